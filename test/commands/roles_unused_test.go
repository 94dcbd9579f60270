package commands_test

import "maps"

// Rules for requests that depend on something that the tests of the roles do not have, and the condition.

// both are the rules of several maps.
func both(all ...map[string]string) map[string]string {
	made := map[string]string{}
	for _, each := range all {
		maps.Copy(made, each)
	}
	return made
}

// adopted are the rules to read an object that the run has created already.
func adopted(suffix string) map[string]string {
	made := map[string]string{}
	for _, resource := range []string{"jobs", "rolebindings"} {
		made["get "+resource+suffix] = "the API server rejected the creation of the object, or did not answer it"
	}
	made["get clusterrolebindings"] = made["get jobs"+suffix]
	return made
}

// targetsWithout are the rules of built-in checks.
func targetsWithout() map[string]string {
	return both(checksWithout(), map[string]string{"get nodes cluster": "an update from a release with cgroup v1 to one without"})
}

// checksWithout are those for any two versions of the tests.
func checksWithout() map[string]string {
	const removed = "a client uses an API that the target removes"
	return map[string]string{
		"get machineconfigurations cluster": "an update from a release before 4.22 to a later one",
		"get osimagestreams cluster": "a pool without a stream of its own makes runc the default runtime, before an update to " +
			"4.23 or later",
		"list cronjobs":                    removed,
		"list flowschemas":                 removed,
		"list prioritylevelconfigurations": removed,
		"list catalogsources":              "OLM has Subscriptions",
		"list *":                           "the cluster has a kind of the platform in the group",
	}
}

func statusWithout() map[string]string {
	const openShift = "the cluster is one of OpenShift"
	return both(checksWithout(), operatorsWithout(openShift), map[string]string{
		"list networkpolicies":                                                                    openShift,
		"list securitycontextconstraints":                                                         openShift,
		"get configmaps etcd-serving-ca in openshift-config":                                      openShift,
		"get configmaps csr-controller-ca in openshift-config-managed":                            openShift,
		"get configmaps service-ca in openshift-config-managed":                                   openShift,
		"get configmaps default-ingress-cert in openshift-config-managed":                         openShift,
		"get configmaps kube-apiserver-aggregator-client-ca in openshift-config-managed":          openShift,
		"get configmaps kube-apiserver-to-kubelet-client-ca in openshift-kube-apiserver-operator": openShift,
		"get configmaps kube-control-plane-signer-ca in openshift-kube-apiserver-operator":        openShift,
	})
}

// operatorsWithout are the rules to read what operators report of migrations.
func operatorsWithout(condition string) map[string]string {
	return map[string]string{"list storageversionmigrations": condition}
}

// jobsWithout are the rules to run Jobs.
func jobsWithout() map[string]string {
	return map[string]string{
		"list events":                    "the API server does not begin a watch with the existing events",
		"list mutatingadmissionpolicies": "a quota requires what a pod does not specify",
	}
}

func runsWithout() map[string]string {
	made := both(targetsWithout(), jobsWithout(), adopted(" in "+zooNamespace), map[string]string{
		"get serviceaccounts in " + zooNamespace:         "a check has an account of the cluster, or the API server rejected the creation of one",
		"get customresourcedefinitions":                  "the release has a CustomResourceDefinition",
		"delete configmaps in openshift-cluster-version": "more runs have ended than records are kept",
	})
	for _, each := range []string{"machinesets", "cronjobs", "catalogsources", "flowschemas", "prioritylevelconfigurations"} {
		delete(made, "list "+each) // of the baseline
	}
	for _, each := range []string{"deploymentconfigs", "imagestreams"} {
		made["list "+each] = "the cluster is one of OpenShift"
	}
	return made
}

// unlisted are the kinds of the test's API server that a baseline reads and no role permits to list.
func unlisted() map[string]string {
	made := map[string]string{}
	for _, each := range []string{"devicetaintrules", "podcertificaterequests", "resourceclaims", "servicecidrs", "storageversionmigrations"} {
		made["list "+each] = "a kind that the user may not list is not in the baseline, and a judgement states that it is not covered"
	}
	return made
}

func pullsWithout() map[string]string {
	const nodes = "the cluster has nodes"
	return both(runsWithout(), map[string]string{
		"create jobs in openshift-cluster-version": nodes,
		"get jobs in openshift-cluster-version":    nodes,
		"delete jobs in openshift-cluster-version": nodes,
		"delete pods in openshift-cluster-version": nodes,
		"get nodes/proxy":                          nodes,
	})
}

func verifiesWithout() map[string]string {
	return map[string]string{"get configmaps in openshift-config": "a signature store has a CA of its own"}
}

func collectsWithout() map[string]string {
	const served, listed = "the cluster serves this API", "none: the archive has the list of these objects"
	return both(operatorsWithout(served), map[string]string{
		"list clusters":                                          served,
		"list kubevirts":                                         served,
		"list virtualmachineinstances":                           served,
		"get clusteroperators update-preflight":                  listed,
		"get validatingadmissionpolicybindings update-preflight": listed,
		"get deployments cluster-version-operator in openshift-cluster-version": listed,
		"get prometheusrules update-preflight":                                  served,
		"list subscriptions":                                                    served,
		"list catalogsources":                                                   served,
		"list clusterautoscalers":                                               served,
		"list machineautoscalers":                                               served,
		"list *":                                                                served,
		"list securitycontextconstraints":                                       served,
		"get featuregates cluster":                                              listed,
		"get images cluster":                                                    listed,
		"get nodes cluster":                                                     listed,
		"get proxies cluster":                                                   listed,
		"get machineconfigurations cluster":                                     listed,
		"get osimagestreams cluster":                                            listed,
		"list clusterresourcequotas":                                            served,
		"list egressips":                                                        served,
		"list keepalivedgroups":                                                 served,
		"list l2advertisements":                                                 served,
	})
}

func conformsWithout() map[string]string {
	return both(jobsWithout(), adopted(""), map[string]string{
		"list mutatingwebhookconfigurations": "a quota requires what a pod does not specify",
		"patch pods":                         "a check is stopped while it runs",
		"get configmaps":                     adopted("")["get jobs"],
	})
}
