package layout

import "path"

// gathered is a resource of an insights archive. Its objects, which are read with typed clients,
// have neither apiVersion nor kind (pkg/record/resource_marshaller.go).
type gathered struct {
	place Place
	// namespaced is true where the directory has a directory for each namespace.
	namespaced bool
	// complete is true where all objects are gathered, and not only those that an alert or a
	// condition is about. Then gatherer is the one whose errors gathers.json has.
	complete bool
	gatherer Gatherer
}

// Gatherer is a part of the insights-operator, as insights-operator/gathers.json names it.
type Gatherer struct {
	Name string
	// Counts is true where it records nothing but the objects of one resource.
	Counts bool
}

func configOf(resource, kind string) Place {
	return Place{Group: "config.openshift.io", Resource: resource, APIVersion: "config.openshift.io/v1", Kind: kind}
}

func webhooksOf(resource, kind string) Place {
	return Place{Group: "admissionregistration.k8s.io", Resource: resource, APIVersion: "admissionregistration.k8s.io/v1", Kind: kind}
}

// insightsDirectories are the directories with a file for each object.
func insightsDirectories() map[string]gathered {
	return map[string]gathered{
		"config/clusteroperator": {place: configOf("clusteroperators", "ClusterOperator"), complete: true, gatherer: Gatherer{Name: "clusterconfig/operators"}},
		"config/node":            {place: Place{Resource: "nodes", APIVersion: "v1", Kind: "Node"}, complete: true, gatherer: Gatherer{Name: "clusterconfig/nodes", Counts: true}},
		"config/machineconfigpools": {place: Place{
			Group: "machineconfiguration.openshift.io", Resource: "machineconfigpools", APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool",
		}, complete: true, gatherer: Gatherer{Name: "clusterconfig/machine_config_pools", Counts: true}},
		"machinesets": {place: Place{
			Group: "machine.openshift.io", Resource: "machinesets", APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet",
		}, namespaced: true, complete: true, gatherer: Gatherer{Name: "clusterconfig/machine_sets", Counts: true}},
		"config/mutatingwebhookconfigurations": {
			place: webhooksOf("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"), complete: true, gatherer: Gatherer{Name: "clusterconfig/mutating_webhook_configurations", Counts: true},
		},
		"config/validatingwebhookconfigurations": {
			place: webhooksOf("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"), complete: true, gatherer: Gatherer{Name: "clusterconfig/validating_webhook_configurations", Counts: true},
		},
		"config/certificatesigningrequests": {place: Place{
			Group: "certificates.k8s.io", Resource: "certificatesigningrequests", APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest",
		}},
		"config/crd": {place: Place{
			Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition",
		}},
		"config/pdbs": {place: Place{Group: "policy", Resource: "poddisruptionbudgets", APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, namespaced: true},
		"config/pod":  {place: Place{Resource: "pods", APIVersion: "v1", Kind: "Pod"}, namespaced: true},
	}
}

func insightsFiles() map[string]Place {
	named := func(place Place, name string) Place {
		place.Name = name
		return place
	}
	return map[string]Place{
		"config/version":        named(configOf("clusterversions", "ClusterVersion"), "version"),
		"config/infrastructure": named(configOf("infrastructures", "Infrastructure"), "cluster"),
		"config/network":        named(configOf("networks", "Network"), "cluster"),
		"config/featuregate":    named(configOf("featuregates", "FeatureGate"), "cluster"),
		"config/proxy":          named(configOf("proxies", "Proxy"), "cluster"),
		"config/image":          named(configOf("images", "Image"), "cluster"),
	}
}

func ofInsights(parts []string) (Place, bool) {
	file := parts[len(parts)-1]
	for _, length := range []int{1, 2} {
		if len(parts) <= length {
			break
		}
		known, ok := insightsDirectories()[path.Join(parts[:length]...)]
		depth := length + 1
		if known.namespaced {
			depth++
		}
		if !ok || len(parts) != depth {
			continue
		}
		place := known.place
		place.Name = file
		if known.namespaced {
			place.Namespace = parts[length]
		}
		return place, true
	}
	place, ok := insightsFiles()[path.Join(parts...)]
	return place, ok
}

// Complete are the resources of which an insights archive has all objects unless their gatherer
// failed, with the gatherers; the zero value for a single object.
func Complete() map[Place]Gatherer {
	found := map[Place]Gatherer{}
	for _, known := range insightsDirectories() {
		if known.complete {
			found[Place{Group: known.place.Group, Resource: known.place.Resource}] = known.gatherer
		}
	}
	for _, place := range insightsFiles() {
		found[Place{Group: place.Group, Resource: place.Resource}] = Gatherer{}
	}
	return found
}
