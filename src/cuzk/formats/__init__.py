"""Files to objects and back: iden3 (circom, snarkjs), bellman (Filecoin, Zcash), snarkjs' JSON.

Every length field is checked against the size of the file before anything is allocated.
"""
