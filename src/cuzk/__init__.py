"""cuzk: a Groth16 proving engine."""
