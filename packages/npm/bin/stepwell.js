#!/usr/bin/env node
// Runs the binary of the package for this platform, and ends as it ends. Downloads nothing.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`@stepwell/${platform}/bin/stepwell`);
} catch {
  console.error(`stepwell: there is no package @stepwell/${platform}. It is an optional dependency: install without`);
  console.error("--omit=optional, or build stepwell from source if your platform has no package.");
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`stepwell: ${binary}: ${error.message}`);
  process.exit(1);
});
// A terminal sends ^C to both processes; a supervisor sends signals to this one only.
for (const signal of ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"]) {
  process.on(signal, () => child.kill(signal));
}
process.on("SIGINT", () => {});
child.on("exit", (code, signal) => {
  process.exit(code ?? 128 + constants.signals[signal]);
});
