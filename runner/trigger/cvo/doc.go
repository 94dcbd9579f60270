// Package cvo answers: may the cluster-version operator (CVO) start this update, according to the published verdict of
// its preflight?
//
// [Gate] is a precondition of CVO (pkg/payload/precondition), [Source] one of its sources of risks (pkg/risk). Both
// take CVO's own types as type parameters, and [Verdicts] reads the JSON form of the objects that CVO's listers return,
// so that the module has no dependencies. Nothing here makes a request, starts a run or writes: a call reads two
// objects from the caches that CVO has. A controller or an administrator runs the preflight, the controller publishes
// its verdict, and CVO, which evaluates a rejected update again about every 15 seconds, continues once there is a
// verdict.
//
// If verdicts were never published, the preflight is not installed: the gate rejects nothing, and the source has no
// risks. If they are, the gate rejects an update without a verdict.
//
// Messages contain no times and no counters: a message that differs from the last one causes a write of the status of
// ClusterVersion, which triggers the next call.
package cvo
