package runner

import (
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/record"
)

// builtinNeeds is what the built-in checks read of the cluster. None of it is
// required: a check that may not look is Unknown, which can be accepted or put
// right.
func builtinNeeds() access.Needs {
	return access.Needs{Optional: []access.Request{
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "admin-gates"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config", Name: "admin-acks"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-cluster-version", Name: "admin-gates"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-cluster-version", Name: "admin-acks"},
		{Verb: "get", Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"},
		{Verb: "list", Group: "config.openshift.io", Resource: "clusteroperators"},
		{Verb: "list", Group: "machineconfiguration.openshift.io", Resource: "machineconfigpools"},
		{Verb: "list", Group: "machine.openshift.io", Resource: "machinesets"},
		{Verb: "list", Group: "apiserver.openshift.io", Resource: "apirequestcounts"},
		{Verb: "list", Group: "operators.coreos.com", Resource: "clusterserviceversions"},
		{Verb: "list", Group: "upgrade.managed.openshift.io", Resource: "upgradeconfigs"},
		{Verb: "list", Group: "policy", Resource: "poddisruptionbudgets"},
		{Verb: "list", Resource: "nodes"},
		{Verb: "list", Resource: "pods"},
		{Verb: "get", Group: "route.openshift.io", Resource: "routes", Namespace: "openshift-monitoring", Name: "thanos-querier"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "default-ingress-cert"},
	}}
}

// TargetsNeeds is what Targets asks of the API server.
func TargetsNeeds() access.Needs {
	return access.Needs{Required: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
	}}.And(builtinNeeds())
}

// TrustNeeds is what Trust asks of the API server. The certificate authorities
// of spec.signatureStores have names of the administrator's choice, and a store
// without them is not honored.
func TrustNeeds() access.Needs {
	return access.Needs{
		Required: []access.Request{
			{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
			{Verb: "get", Group: "config.openshift.io", Resource: "proxies", Name: "cluster"},
			{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "release-verification"},
			{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "trusted-ca-bundle"},
			{Verb: "list", Resource: "configmaps", Namespace: "openshift-config-managed"},
		},
		Optional: []access.Request{{Verb: "get", Resource: "configmaps", Namespace: "openshift-config"}},
	}
}

// ChecksNeeds is what Checks asks of the API server.
func ChecksNeeds() access.Needs { return TrustNeeds().And(pullNeeds()).And(policyNeeds()) }

// pullNeeds is what finding out takes how the cluster pulls images, and which
// manifests are for it. What may not be read is told, where it matters.
func pullNeeds() access.Needs {
	return access.Needs{Optional: []access.Request{
		{Verb: "list", Group: "config.openshift.io", Resource: "imagedigestmirrorsets"},
		{Verb: "list", Group: "config.openshift.io", Resource: "imagetagmirrorsets"},
		{Verb: "list", Group: "operator.openshift.io", Resource: "imagecontentsourcepolicies"},
		{Verb: "get", Group: "config.openshift.io", Resource: "images", Name: "cluster"},
		{Verb: "get", Resource: "secrets", Namespace: "openshift-config", Name: "pull-secret"},
		{Verb: "get", Group: "config.openshift.io", Resource: "featuregates", Name: "cluster"},
		{Verb: "get", Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"},
		{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "openshift-cluster-version", Name: "cluster-version-operator"},
		{Verb: "list", Resource: "nodes"},
	}}
}

// readingNeeds is what a run asks of the API server whatever the release ships,
// before it writes anything.
func (c Config) readingNeeds() access.Needs {
	needs := ChecksNeeds().And(builtinNeeds())
	if c.NoJobs {
		return needs
	}
	if c.Images.Pulls() {
		needs = needs.And(pullingNeeds())
	}
	return needs.And(jobs.Needs()).And(launch.ListNeeds()).And(launch.GuardNeeds()).And(access.Needs{
		Optional: append(access.WritesNeeds(), access.Request{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}),
	})
}

// writingNeeds is what a run asks of the API server to launch what is planned.
func (c Config) writingNeeds(plan launch.Plan) access.Needs {
	switch {
	case c.NoJobs:
		return access.Needs{}
	case len(plan.Checks) == 0: // nor does it make what they would need
		return record.Needs()
	default:
		return record.Needs().And(plan.Needs())
	}
}

// RunNeeds is what Run asks of the API server for whatever release when it looks
// at images so, but for what the roles of the release allow: Listing has that of
// one release.
func RunNeeds(images image.Mode) access.Needs {
	return Config{Images: images}.readingNeeds().And(record.Needs()).And(launch.AnyNeeds())
}
