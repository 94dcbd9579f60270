// Package gate answers: which conditions stand between this cluster and the
// target until somebody fixes or acknowledges them? Each gate is one file and
// one collector.Source. Names are the risk names of the cluster-version
// operator (CVO).
package gate
