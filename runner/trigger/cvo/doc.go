// Package cvo answers: may the cluster-version operator (CVO) start this update, by the
// published verdict of its preflight?
//
// [Gate] is a precondition of CVO (pkg/payload/precondition), [Source] one of its sources
// of risks (pkg/risk). Both take CVO's own types as type parameters, and [Verdicts] reads
// the JSON form of what CVO's listers return, so that the module has no dependency. Nothing
// here makes a request, starts a run or writes: a call reads two objects from the caches
// that CVO has. A controller or an administrator runs the preflight, the controller
// publishes its verdict, and CVO, which evaluates a refused update again about every 15
// seconds, continues once there is a verdict.
//
// Where the verdicts were never published, the preflight is not installed: the gate refuses
// nothing, and the source has no risks. Where they are, an update without a verdict is
// refused.
//
// Messages have no times and no counters: a message that differs from the last one is a
// write of the status of ClusterVersion, and that is the next call.
package cvo
