package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
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
			found := tree.files[name]
			if found == nil || tree.extra {
				continue
			}
			if err := discover(found, served); err != nil { // the rest of the file may have any resource
				leftOut.add(tree.title+"/"+name, err.Error())
				return map[Resource]bool{}
			}
		}
	}
	if !served[Resource{"", "pods"}] || !served[clusterVersions()] { // one of the files is missing
		return map[Resource]bool{}
	}
	return served
}

// discover adds the resources of a file. The list of aggregated discovery has no resourceVersion, so
// that it has all groups where it was read to its end.
func discover(found *file, served map[Resource]bool) error {
	const kind = "APIGroupDiscoveryList"
	list, err := found.objects(func(object []byte) error { return discoverGroup(object, served) })
	switch {
	case err != nil:
		return err
	case list.Kind != kind:
		return fmt.Errorf("it has the kind %q, where %s is expected", list.Kind, kind)
	case list.Metadata != nil && list.Metadata.Continue != "":
		return errors.New("its list continues elsewhere")
	}
	return nil
}

// anyOf stands for the resources of a group of which discovery may lack some.
func anyOf(group string) Resource { return Resource{group, "*"} }

func discoverGroup(object []byte, served map[Resource]bool) error {
	var group apidiscoveryv2.APIGroupDiscovery
	if err := json.Unmarshal(object, &group); err != nil {
		return err
	}
	for _, version := range group.Versions {
		if version.Freshness == apidiscoveryv2.DiscoveryFreshnessStale { // its API server did not answer
			served[anyOf(group.Name)] = true
		}
		for _, each := range version.Resources {
			served[Resource{group.Name, each.Resource}] = true
		}
	}
	return nil
}

// Kubernetes is the version of the API server, such as "1.31.4"; empty where the archive does not have it.
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

// aggregated are the groups, beside those of Kubernetes, that CustomResourceDefinitions do not define.
func aggregated() []string {
	return []string{
		"apps.openshift.io", "authorization.openshift.io", "build.openshift.io", "image.openshift.io", "oauth.openshift.io", "packages.operators.coreos.com",
		"project.openshift.io", "quota.openshift.io", "route.openshift.io", "security.openshift.io", "template.openshift.io", "user.openshift.io",
	}
}

// custom reports whether a CustomResourceDefinition defines the resource where the cluster serves it.
func (r Resource) custom() bool {
	return strings.Contains(r.Group, ".") && !strings.HasSuffix(r.Group, "k8s.io") && !slices.Contains(aggregated(), r.Group)
}

// introduction is when Kubernetes began to serve a resource that checks read.
type introduction struct {
	// gated is the version that serves it where a feature gate is on, and always the one that serves it without.
	gated, always string
}

// introductions of resources (KEP-3488: alpha in 1.26, beta and off in 1.28, stable in 1.30).
func introductions() map[Resource]introduction {
	policies := introduction{gated: "1.26.0", always: "1.30.0"}
	return map[Resource]introduction{
		{"admissionregistration.k8s.io", "validatingadmissionpolicies"}:       policies,
		{"admissionregistration.k8s.io", "validatingadmissionpolicybindings"}: policies,
	}
}

// before reports whether the cluster does not serve the resource by its version. Between the
// versions of an introduction, that depends on the feature set: the default one has no gate that is
// off by default.
func (i *Inventory) before(of introduction) bool {
	current, err := version.ParseGeneric(i.Kubernetes())
	switch {
	case err != nil || current.AtLeast(version.MustParseGeneric(of.always)):
		return false
	case current.LessThan(version.MustParseGeneric(of.gated)):
		return true
	}
	gates, ok := i.Table(Resource{"config.openshift.io", "featuregates"}, "").Find("", "cluster")
	if !ok {
		return false
	}
	var fields struct {
		Spec struct {
			FeatureSet string `json:"featureSet"`
		} `json:"spec"`
	}
	object, err := gates.Object()
	return err == nil && json.Unmarshal(object, &fields) == nil && fields.Spec.FeatureSet == ""
}

// Unserved reports whether the archive proves that the cluster does not serve a resource.
func (i *Inventory) Unserved(of Resource) bool {
	if slices.Contains(i.index.Unserved, of.String()) {
		return true
	}
	if served := i.served(); len(served) > 0 {
		return !served[of] && !served[anyOf(of.Group)]
	}
	if introduced, ok := introductions()[of]; ok {
		return i.before(introduced)
	}
	if !of.custom() {
		return false
	}
	if clusterScoped, namespaced := i.scope(of); clusterScoped || namespaced { // it has objects
		return false
	}
	definitions := i.Table(definitions(), "")
	if _, incomplete := definitions.Missing("", ""); incomplete {
		return false
	}
	_, defined := definitions.Find("", of.String())
	return !defined
}
