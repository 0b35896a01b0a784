pragma circom 2.0.0;

// "I know the secret of a leaf of this Merkle tree, and this is my nullifier for this context."
//
// The hash is a demonstration: a two-word Feistel network with the round function (x + c)^5 and
// 72 rounds, made for this folder so that it needs no library. NOBODY HAS ANALYSED IT: it shows how
// proving works and must not protect anything.

function ROUNDS() {
    return 72;
}

// Round constants: c_0 = 0, c_1 = 1, c_(k+1) = c_k^2 + k, in the scalar field.
function CONSTANT(round) {
    if (round == 0) {
        return 0;
    }
    var c = 1;
    for (var k = 1; k < round; k++) {
        c = c * c + k;
    }
    return c;
}

// (left, right) -> (right + (left + c_k)^5, left), 72 times; then the left word plus both inputs.
template Compress() {
    signal input left;
    signal input right;
    signal output out;

    var rounds = ROUNDS();
    signal square[rounds];
    signal fourth[rounds];
    signal state[rounds + 2]; // state[k + 1] is the left word before round k, state[k] the right one

    state[0] <== right;
    state[1] <== left;
    for (var k = 0; k < rounds; k++) {
        var t = state[k + 1] + CONSTANT(k);
        square[k] <== t * t;
        fourth[k] <== square[k] * square[k];
        state[k + 2] <== fourth[k] * t + state[k];
    }
    out <== state[rounds + 1] + left + right;
}

// `value` as `bits` binary digits, the lowest first.
template Digits(bits) {
    signal input value;
    signal output digit[bits];

    var sum = 0;
    for (var i = 0; i < bits; i++) {
        digit[i] <-- (value >> i) & 1;
        digit[i] * (digit[i] - 1) === 0;
        sum += digit[i] * (1 << i);
    }
    sum === value;
}

// root = the tree's root above leaf Compress(secret, 0) at `position`; nullifier = Compress(secret, context).
template Membership(depth) {
    signal input context; // public: what the nullifier is for; 0 would reveal the leaf
    signal input secret;
    signal input position; // the leaf's number; its binary digits say on which side it lies
    signal input siblings[depth]; // the neighbour at each level, leaf level first
    signal output root;
    signal output nullifier;

    component leaf = Compress();
    leaf.left <== secret;
    leaf.right <== 0;

    component mark = Compress();
    mark.left <== secret;
    mark.right <== context;
    nullifier <== mark.out;

    component side = Digits(depth);
    side.value <== position;

    component node[depth];
    signal path[depth + 1];
    path[0] <== leaf.out;
    for (var i = 0; i < depth; i++) {
        node[i] = Compress();
        // digit 0: (path, sibling); digit 1: (sibling, path)
        node[i].left <== side.digit[i] * (siblings[i] - path[i]) + path[i];
        node[i].right <== siblings[i] + path[i] - node[i].left;
        path[i + 1] <== node[i].out;
    }
    root <== path[depth];
}
