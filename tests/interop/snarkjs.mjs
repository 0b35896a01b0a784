// Runs a list of snarkjs commands in one process (a start takes a second); the
// results go to COMMANDS.json.results.
// usage: node snarkjs.mjs MODULES COMMANDS.json
import { readFileSync, writeFileSync } from "fs";
import { join } from "path";
import { pathToFileURL } from "url";

const [modules, commands] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(modules, path)));
const snarkjs = await load("snarkjs/main.js");
const { getCurveFromName } = await load("ffjavascript/main.js");

const messages = [];
const logger = { debug() {}, info() {}, warn: (m) => messages.push(m), error: (m) => messages.push(m) };
const json = (path) => JSON.parse(readFileSync(path, "utf8"));

const steps = {
  async powers({ curve, power, out, prepared }) {
    await snarkjs.powersOfTau.newAccumulator(await getCurveFromName(curve), power, out + ".0", logger);
    await snarkjs.powersOfTau.contribute(out + ".0", out, "one", "some entropy", logger);
    await snarkjs.powersOfTau.preparePhase2(out, prepared, logger);
    return true;
  },
  async key({ r1cs, ptau, out }) {
    const hash = await snarkjs.zKey.newZKey(r1cs, ptau, out + ".0", logger);
    await snarkjs.zKey.contribute(out + ".0", out, "two", "more entropy", logger);
    return Buffer.from(hash).toString("hex");
  },
  contribute: async ({ key, out }) => (await snarkjs.zKey.contribute(key, out, "next", "entropy", logger)) && true,
  check_key: ({ r1cs, ptau, key }) => snarkjs.zKey.verifyFromR1cs(r1cs, ptau, key, logger),
  async prove({ key, witness, proof, signals, vk }) {
    const made = await snarkjs.groth16.prove(key, witness, logger);
    writeFileSync(proof, JSON.stringify(made.proof));
    writeFileSync(signals, JSON.stringify(made.publicSignals));
    writeFileSync(vk, JSON.stringify(await snarkjs.zKey.exportVerificationKey(key, logger)));
    return snarkjs.groth16.verify(json(vk), made.publicSignals, made.proof, logger);
  },
  verify: ({ vk, signals, proof }) => snarkjs.groth16.verify(json(vk), json(signals), json(proof), logger),
  // what `snarkjs zkey export soliditycalldata` prints
  calldata: async ({ signals, proof, text }) =>
    (await snarkjs.groth16.exportSolidityCallData(json(proof), json(signals))) === text,
  async witness({ wasm, input, out }) {
    await snarkjs.wtns.calculate(input, wasm, out);
    return true;
  },
};

const results = [];
for (const { run, ...options } of json(commands)) {
  messages.length = 0;
  let result;
  try {
    result = await steps[run](options);
  } catch (error) {
    result = String(error);
  }
  results.push({ result, messages: messages.map(String) });
}
writeFileSync(commands + ".results", JSON.stringify(results));
process.exit(0);
