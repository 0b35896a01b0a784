pragma circom 2.0.0;

include "membership.circom";

component main {public [context]} = Membership(20);
