package draining

// Evaluate is evaluate, for tests of its findings.
var Evaluate = evaluate
