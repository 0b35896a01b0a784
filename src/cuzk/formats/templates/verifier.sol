// SPDX-License-Identifier: MIT OR Apache-2.0
// Written by cuzk from a verifying key with $public.
pragma solidity >=0.8.13 <0.9.0;

/// Groth16 on BN254: a proof (A, B, C) is valid for these public signals when
///
///     e(-A, B) e(alpha, beta) e(IC0 + sum pubSignals[i] IC(i+1), gamma) e(C, delta) = 1.
///
/// Points and pairing are the precompiled contracts 6 (addition), 7 (multiplication) of EIP-196 and 8
/// (pairing) of EIP-197. They check that coordinates are below Q, points on the curve and, in G2, in the
/// subgroup; infinity is (0, 0). In G2 the imaginary part of a coordinate comes first.
///
/// Anyone can turn one valid proof into another for the same signals: do not use a proof as an identifier.
contract Groth16Verifier {
    /// Order of the field of coordinates, and of the group (the field of signals).
    uint256 private constant Q = $q;
    uint256 private constant R = $r;

$constants

    /// False for an invalid proof, a signal that is not below R, and anything that is no point.
    function verifyProof(
        uint256[2] calldata a,
        uint256[2][2] calldata b,
        uint256[2] calldata c,
        $signals calldata pubSignals
    ) public view returns (bool valid) {
        if (a[1] >= Q) return false; // before the subtraction below hides it
$sum
        uint256[24] memory pairs = [
            a[0], (Q - a[1]) % Q, b[0][0], b[0][1], b[1][0], b[1][1],
            ALPHA_X, ALPHA_Y, BETA_X1, BETA_X0, BETA_Y1, BETA_Y0,
            sum[0], sum[1], GAMMA_X1, GAMMA_X0, GAMMA_Y1, GAMMA_Y0,
            c[0], c[1], DELTA_X1, DELTA_X0, DELTA_Y1, DELTA_Y0
        ];
        assembly ("memory-safe") {
            mstore(0, 0)
            let done := staticcall(gas(), 8, pairs, 0x300, 0, 0x20)
            valid := and(done, eq(mload(0), 1))
        }
    }
$add}
