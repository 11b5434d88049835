// The binary that the tests run: never a stand-in for it.

"use strict";

const path = require("node:path");

const built = path.join(__dirname, "..", "..", "..", "target", "debug", "stepwell");

module.exports = { BINARY: process.env.STEPWELL_BINARY || built };
