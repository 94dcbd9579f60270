// Package cvo answers: may the cluster-version operator (CVO) start this update, by the
// recorded verdict of its preflight?
//
// [Gate] is a precondition of CVO (pkg/payload/precondition), [Source] one of its sources
// of risks (pkg/risk). Both take CVO's own types as type parameters, so that the module
// has no dependency, and read the records of runs through a function that CVO provides.
// They start nothing and write nothing: a controller or an administrator runs the
// preflight, and CVO, which evaluates a refused update again about every 15 seconds,
// continues once there is a verdict.
//
// CVO evaluates preconditions in the goroutine that writes the status of ClusterVersion,
// without a deadline. A call therefore returns within two seconds, also if the reader
// does not, and a panic of the reader is a refusal. Messages have no times and no
// counters: a message that differs from the last one is a write of the status, and
// that is the next call.
package cvo
