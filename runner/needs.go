package runner

import (
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/rights"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/image/pull"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/selection"
)

// RunNeeds are the permissions that Run needs to start and those that it can use,
// for every release and that image mode. The rules of a release's roles come on
// top; [Listing] has them for one release.
func RunNeeds(images image.Mode) access.Needs {
	return Options{Selection: selection.Selection{Images: images}}.readingNeeds().And(recordstore.Needs()).And(recordstore.KeyNeeds()).And(jobplan.AnyNeeds())
}

// ChecksNeeds are the permissions of Checks.
func ChecksNeeds() access.Needs { return VerifyNeeds().And(registryNeeds()).And(proof.PolicyNeeds()) }

// VerifyNeeds are the permissions to read the keyrings and signature stores of the
// cluster (signature.Override). The certificate authorities of spec.signatureStores have names that the
// administrator chooses, and a store without them is not used.
func VerifyNeeds() access.Needs {
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

// registryNeeds are the permissions to find out how the cluster pulls images, and
// which manifests apply to it.
func registryNeeds() access.Needs {
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

// readingNeeds are the permissions of a run before it writes, for every release.
func (o Options) readingNeeds() access.Needs {
	needs := ChecksNeeds().And(builtin.Needs()).And(definition.Needs())
	if o.Selection.NoJobs {
		return needs
	}
	if o.Selection.Images.Pulls() {
		needs = needs.And(pullNeeds())
	}
	return needs.And(jobs.Needs()).And(cleanup.ListNeeds()).And(writeguard.Needs()).And(access.Needs{
		Optional: append(rights.GroupsNeeds(), access.Request{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}),
	})
}

// writingNeeds are the permissions to record a run and to run its checks.
func (o Options) writingNeeds(draft jobplan.Draft) access.Needs {
	switch {
	case o.Selection.NoJobs:
		return access.Needs{}
	case len(draft.Checks) == 0:
		return recordstore.Needs().And(recordstore.KeyNeeds())
	}
	return recordstore.Needs().And(recordstore.KeyNeeds()).And(draft.Needs())
}

// pullNeeds are the permissions to have nodes pull images. Where the kubelets may
// not be read, their free disk space is not known.
func pullNeeds() access.Needs {
	return jobplan.JobNeeds(pull.Namespace).And(access.Needs{
		Required: []access.Request{{Verb: "list", Resource: "nodes"}},
		Optional: []access.Request{{Verb: "get", Resource: "nodes", Subresource: "proxy"}},
	})
}
