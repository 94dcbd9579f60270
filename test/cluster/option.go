package cluster

import "time"

// Option changes what Start starts.
type Option func(*plan)

// ControlPlaneOnly leaves out everything that needs root: no node, no registry,
// so pods stay Pending for ever, and Nodes are what a test says that they are.
// It is up in a few seconds.
func ControlPlaneOnly() Option {
	return func(p *plan) { p.controlPlaneOnly = true }
}

// KWOK is ControlPlaneOnly with nodes that kwok plays the kubelets of: Jobs run
// in thousands, and nothing runs in their pods. See AnnotationTakes and
// AnnotationSays for what the pods can be told.
func KWOK(nodes int) Option {
	return func(p *plan) { p.controlPlaneOnly, p.simulated = true, nodes }
}

// ControllerRate is how many requests a second each controller of the controller
// manager may make, and how many at once: its flags kube-api-qps and
// kube-api-burst. Without this option they are Kubernetes' defaults, 20 and 30.
func ControllerRate(rate, burst int) Option {
	return func(p *plan) { p.controllerRate, p.controllerBurst = rate, burst }
}

// Standing lets the cluster outlive this process. Remove ends it.
func Standing() Option {
	return func(p *plan) { p.standing = true }
}

// FeatureSet installs the CRDs as a cluster with that feature set has them:
// "Default" (which is what Start does without this option),
// "TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade" or "OKD".
func FeatureSet(name string) Option {
	return func(p *plan) { p.featureSet = name }
}

// CRDs installs the CustomResourceDefinitions in these files besides: those of
// APIs that not every OpenShift cluster has.
func CRDs(files ...string) Option {
	return func(p *plan) { p.furtherCRDs = files }
}

// Progress reports each step as it is done, and how long it took. It is called
// from several goroutines, one at a time.
func Progress(report func(step string, took time.Duration)) Option {
	return func(p *plan) { p.report = report }
}
