package inventory

import (
	"encoding/json"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/util/version"
)

// discovered are the resources of the aggregated discovery in the archive. Without both of its
// files, they are not known.
func discovered(trees []*tree, leftOut *omissions) map[Resource]bool {
	served := map[Resource]bool{}
	for _, name := range []string{"aggregated-discovery-api.yaml", "aggregated-discovery-apis.yaml"} {
		for _, tree := range trees {
			if found := tree.files[name]; found != nil && !tree.extra {
				_, err := found.objects(func(object []byte) error { return discoverGroup(object, served) })
				if err != nil {
					leftOut.add(tree.title+"/"+name, err.Error())
				}
			}
		}
	}
	if !served[Resource{"", "pods"}] || !served[clusterVersions()] { // one of the files is missing or torn
		return map[Resource]bool{}
	}
	return served
}

func discoverGroup(object []byte, served map[Resource]bool) error {
	var group apidiscoveryv2.APIGroupDiscovery
	if err := json.Unmarshal(object, &group); err != nil {
		return err
	}
	for _, version := range group.Versions {
		for _, each := range version.Resources {
			served[Resource{group.Name, each.Resource}] = true
		}
	}
	return nil
}

// Kubernetes is the version of the API server, such as "1.31.4"; empty where the archive does not
// have it.
func (i *Inventory) Kubernetes() string {
	found, ok := i.Table(clusterOperators(), "").Find("", "kube-apiserver")
	if !ok {
		return strings.TrimPrefix(i.index.Version.GitVersion, "v")
	}
	var fields struct {
		Status struct {
			Versions []struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"versions"`
		} `json:"status"`
	}
	object, err := found.Object()
	if err != nil || json.Unmarshal(object, &fields) != nil {
		return ""
	}
	for _, each := range fields.Status.Versions {
		if each.Name == "kube-apiserver" {
			return each.Version
		}
	}
	return ""
}

// aggregated are the groups, beside those of Kubernetes, that CustomResourceDefinitions do not
// define.
func aggregated() []string {
	return []string{
		"apps.openshift.io", "authorization.openshift.io", "build.openshift.io", "image.openshift.io", "oauth.openshift.io", "packages.operators.coreos.com",
		"project.openshift.io", "quota.openshift.io", "route.openshift.io", "security.openshift.io", "template.openshift.io", "user.openshift.io",
	}
}

// since are the versions of Kubernetes that began to serve a resource that checks read.
func since() map[Resource]string {
	return map[Resource]string{
		{"admissionregistration.k8s.io", "validatingadmissionpolicies"}:       "1.30.0",
		{"admissionregistration.k8s.io", "validatingadmissionpolicybindings"}: "1.30.0",
	}
}

// Unserved reports whether the archive proves that the cluster does not serve a resource.
func (i *Inventory) Unserved(of Resource) bool {
	if slices.Contains(i.index.Unserved, of.String()) {
		return true
	}
	if served := i.served(); len(served) > 0 {
		return !served[of]
	}
	if first, ok := since()[of]; ok {
		current, err := version.ParseGeneric(i.Kubernetes())
		return err == nil && current.LessThan(version.MustParseGeneric(first))
	}
	if !strings.Contains(of.Group, ".") || strings.HasSuffix(of.Group, "k8s.io") || slices.Contains(aggregated(), of.Group) {
		return false
	}
	definitions := i.Table(Resource{"apiextensions.k8s.io", "customresourcedefinitions"}, "")
	if _, incomplete := definitions.Missing("", ""); incomplete {
		return false
	}
	_, defined := definitions.Find("", of.String())
	return !defined
}
