// Package controller answers: which preflights run by themselves in this cluster, and
// when?
//
// [Decide] decides this as a pure function of ClusterVersion, the recorded runs and the
// time. What [Add] adds to a manager observes the cluster and executes the plan: one run at
// a time, by the public functions of package runner.
//
// The controller has no state but the records of the runs, and the UpdatePreflights of
// administrators (package v1alpha1), which are requests. A run in progress whose process
// was killed is continued by the next leader, with its results so far. It writes the
// objects of its runs, its signals, UpdatePreflights and their events, and what it publishes
// of the records (package published), and never ClusterVersion.
//
// The signals state the verdicts in the cluster ([Signals]). They are applied after each
// reconciliation and when a verdict expires, by the leader only, and apart from the runs.
package controller
