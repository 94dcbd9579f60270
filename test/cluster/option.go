package cluster

import "time"

// Option changes what Start starts.
type Option func(*plan)

// ControlPlaneOnly omits everything that needs root: there is no node and no
// registry. Pods stay pending, and Node objects are not changed by the cluster.
// The start takes a few seconds.
func ControlPlaneOnly() Option {
	return func(p *plan) { p.controlPlaneOnly = true }
}

// KWOK is ControlPlaneOnly with nodes whose kubelets kwok simulates: it runs
// thousands of Jobs, without containers. AnnotationTakes and AnnotationMessage
// control the pods.
func KWOK(nodes int) Option {
	return func(p *plan) { p.controlPlaneOnly, p.simulated = true, nodes }
}

// Exclusive has Main start a cluster, and use neither the shared control plane nor an
// existing cluster: the tests kill its components.
func Exclusive() Option {
	return func(p *plan) { p.exclusive = true }
}

// ControllerRate limits the requests per second of each controller of the
// controller manager, and their burst: its flags kube-api-qps and kube-api-burst.
// The defaults are those of Kubernetes, 20 and 30.
func ControllerRate(rate, burst int) Option {
	return func(p *plan) { p.controllerRate, p.controllerBurst = rate, burst }
}

// QuickScheduler has the scheduler try a pod again one second after it has found no node for it,
// instead of up to ten, and serve its metrics: see Cluster.Unscheduled.
func QuickScheduler() Option {
	return func(p *plan) { p.quickScheduler = true }
}

// Standing lets the cluster outlive this process. Remove stops it.
func Standing() Option {
	return func(p *plan) { p.standing = true }
}

// FeatureSet installs the CRDs of a cluster with that feature set: "Default" (the
// default), "TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade" or
// "OKD".
func FeatureSet(name string) Option {
	return func(p *plan) { p.featureSet = name }
}

// CRDs also installs the CustomResourceDefinitions in these files, for APIs that
// only some OpenShift clusters have.
func CRDs(files ...string) Option {
	return func(p *plan) { p.furtherCRDs = files }
}

// Console also installs the APIs of the web console, which a cluster without that capability does not have.
func Console() Option {
	return func(p *plan) {
		p.furtherAPIs = map[string][]string{
			"config/v1":  {"consoles"},
			"console/v1": {"consoleclidownloads", "consolelinks", "consolenotifications"},
		}
	}
}

// Progress calls report after each step of the start with the time that it took.
// Calls come from several goroutines, but never concurrently.
func Progress(report func(step string, took time.Duration)) Option {
	return func(p *plan) { p.report = report }
}
