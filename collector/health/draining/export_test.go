package draining

// Judge is judge, for tests of its findings.
var Judge = judge
