"""The binary files of circom and snarkjs: .r1cs, .wtns, .zkey, .ptau.

One frame holds them all (frame.py); the fields and points inside are described in fields.py.
"""
