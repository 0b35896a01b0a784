// node evm.cjs PACKAGES < job: compiles a Solidity source, deploys its contract, calls it.
//   job     {"source": "..", "optimize": bool, "arguments": ["..", ..]}: hexadecimal, encoded, for its one method
//   result  {"warnings": [..], "size": bytes, "methods": {signature: selector}, "calls": [{"returned": "0x..", "error": null | "..", "gas": n}]}
"use strict";

const { createRequire } = require("node:module");
const { readFileSync } = require("node:fs");
const { join, resolve } = require("node:path");

const packages = createRequire(join(resolve(process.argv[2]), "package.json"));
const solc = packages("solc");
const { createEVM } = packages("@ethereumjs/evm");
const { bytesToHex, hexToBytes } = packages("@ethereumjs/util");

function compile(job) {
  const settings = {
    optimizer: { enabled: job.optimize },
    outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.deployedBytecode.object", "evm.methodIdentifiers"] } },
  };
  const input = { language: "Solidity", sources: { "verifier.sol": { content: job.source } }, settings };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const messages = (output.errors || []).map((e) => e.formattedMessage);
  if ((output.errors || []).some((e) => e.severity === "error")) throw new Error(messages.join("\n"));
  const contract = output.contracts["verifier.sol"].Groth16Verifier.evm;
  return { contract, messages };
}

async function main() {
  const job = JSON.parse(readFileSync(0, "utf8"));
  const { contract, messages } = compile(job);
  const evm = await createEVM();
  const gasLimit = 30000000n;
  const made = await evm.runCall({ data: hexToBytes("0x" + contract.bytecode.object), gasLimit });
  if (made.execResult.exceptionError) throw new Error("deployment: " + made.execResult.exceptionError.error);
  const calls = [];
  const [selector] = Object.values(contract.methodIdentifiers);
  for (const words of job.arguments) {
    const data = hexToBytes("0x" + selector + words);
    const { execResult } = await evm.runCall({ to: made.createdAddress, data, gasLimit: 2000000n });
    calls.push({
      returned: bytesToHex(execResult.returnValue),
      error: execResult.exceptionError ? execResult.exceptionError.error : null,
      gas: Number(execResult.executionGasUsed),
    });
  }
  const size = contract.deployedBytecode.object.length / 2;
  console.log(JSON.stringify({ warnings: messages, size, methods: contract.methodIdentifiers, calls }));
}

main().catch((error) => {
  console.error(String(error.message || error));
  process.exit(1);
});
