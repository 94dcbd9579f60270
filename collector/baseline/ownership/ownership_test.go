package ownership_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/baseline/ownership"
)

// owners are those of a cluster of which some operators name what is theirs.
func owners() ownership.Owners {
	operator := func(name string, related ...configv1.ObjectReference) configv1.ClusterOperator {
		made := configv1.ClusterOperator{Status: configv1.ClusterOperatorStatus{RelatedObjects: related}}
		made.Name = name
		return made
	}
	namespace := func(name string) configv1.ObjectReference {
		return configv1.ObjectReference{Resource: "namespaces", Name: name}
	}
	return ownership.Of([]configv1.ClusterOperator{
		operator("ingress", namespace("openshift-ingress"),
			configv1.ObjectReference{Group: "operator.openshift.io", Resource: "ingresscontrollers", Namespace: "openshift-ingress-operator"}),
		operator("dns", namespace("openshift-dns"), configv1.ObjectReference{Group: "operator.openshift.io", Resource: "dnses", Name: "default"}),
		operator("machine-config", configv1.ObjectReference{
			Group: "machineconfiguration.openshift.io", Resource: "machineconfigpools",
			Name: "worker",
		}, configv1.ObjectReference{Group: "machineconfiguration.openshift.io", Resource: "kubeletconfigs"}),
		operator("olm", namespace("openshift-operator-lifecycle-manager")),
	})
}

// written is a managed field of a manager that has written the spec.
func written(manager string) string {
	return "{manager: " + manager + ", operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {'f:spec': {}}}"
}

func TestProves(t *testing.T) {
	const deployment = "apps/deployments"
	for name, tc := range map[string]struct {
		reason, resource, metadata string
		want                       bool
	}{
		"Owned": {
			reason: "ClusterVersion owns it", resource: deployment,
			metadata: "{name: a, namespace: b, " +
				"ownerReferences: [{apiVersion: config.openshift.io/v1, kind: ClusterVersion, name: version, uid: u}]}",
			want: true,
		},
		"OwnedLike": {
			reason: "another API has a kind of this name", resource: deployment,
			metadata: "{name: a, namespace: b, ownerReferences: [{apiVersion: example.com/v1, kind: ClusterVersion, name: version, uid: u}]}",
		},
		"OwnedGroup": {
			reason: "a group that only begins alike is another one", resource: deployment,
			metadata: "{name: a, ownerReferences: [{apiVersion: config.openshift.io.example.com/v1, kind: ClusterVersion, name: version, uid: u}]}",
		},
		"Annotated": {
			reason: "a manifest of the release has the annotation", resource: deployment,
			metadata: "{name: a, namespace: b, annotations: {include.release.openshift.io/self-managed-high-availability: 'true'}}", want: true,
		},
		"Applied": {
			reason: "the cluster-version operator has written it", resource: deployment,
			metadata: "{name: a, namespace: b, managedFields: [" + written("cluster-version-operator") + "]}", want: true,
		},
		"AppliedStatus": {
			reason: "it has written only its status", resource: deployment,
			metadata: "{name: a, namespace: b, managedFields: [{manager: cluster-version-operator, operation: Update, apiVersion: v1, " +
				"subresource: status, fieldsType: FieldsV1, fieldsV1: {'f:status': {}}}]}",
		},
		"Name": {
			reason: "an operator names it", resource: "machineconfiguration.openshift.io/machineconfigpools",
			metadata: "{name: worker}", want: true,
		},
		"OtherName": {
			reason: "no operator names it", resource: "machineconfiguration.openshift.io/machineconfigpools",
			metadata: "{name: infra}",
		},
		"OtherGroup": {
			reason: "the name is of a resource in another group", resource: "example.com/machineconfigpools",
			metadata: "{name: worker}",
		},
		"All": {
			reason:   "an entry without a name is for a must-gather: kube-apiserver names all definitions so",
			resource: "machineconfiguration.openshift.io/kubeletconfigs", metadata: "{name: any}",
		},
		"AllOfOne": {
			reason: "an operator names all of the resource in a namespace", resource: "operator.openshift.io/ingresscontrollers",
			metadata: "{name: default, namespace: openshift-ingress-operator}", want: true,
		},
		"AllOfOther": {
			reason: "and none in another namespace", resource: "operator.openshift.io/ingresscontrollers",
			metadata: "{name: default, namespace: shop}",
		},
		"Namespace": {
			reason: "an operator names its namespace", resource: deployment,
			metadata: "{name: router-default, namespace: openshift-ingress}", want: true,
		},
		"ByOperator": {
			reason: "and a program made it there", resource: deployment,
			metadata: "{name: router-default, namespace: openshift-ingress, managedFields: [" + written("ingress-operator") + "]}", want: true,
		},
		"HandMade": {
			reason: "a person made it there", resource: deployment,
			metadata: "{name: debug, namespace: openshift-ingress, managedFields: [" + written("kubectl-create") + "]}",
		},
		"GitOps": {
			reason: "so did who wrote the manifest that Argo CD applies", resource: deployment,
			metadata: "{name: debug, namespace: openshift-ingress, managedFields: [" + written("argocd-controller") + "]}",
		},
		"Edited": {
			reason: "a person edited what an operator made", resource: deployment,
			metadata: "{name: router-default, namespace: openshift-ingress, managedFields: [" + written("ingress-operator") + ", " +
				written("kubectl-edit") + "]}", want: true,
		},
		"EditedByCVO": {
			reason: "a person edited what is of the release", resource: deployment,
			metadata: "{name: a, namespace: b, annotations: {include.release.openshift.io/ibm-cloud-managed: 'true'}, managedFields: [" +
				written("kubectl-edit") + "]}", want: true,
		},
		"OfOLM": {
			reason: "OLM made it for an operator of a user", resource: deployment,
			metadata: "{name: widget, namespace: openshift-ingress, labels: {olm.owner: widget.v1}}",
		},
		"OfOLMOurs": {
			reason: "the package server is of the release", resource: deployment,
			metadata: "{name: packageserver, namespace: openshift-operator-lifecycle-manager, labels: {olm.owner: packageserver}}", want: true,
		},
		"Operators": {
			reason: "users install operators there, and no operator of the release names it", resource: deployment,
			metadata: "{name: widget, namespace: openshift-operators}",
		},
		"Logging": {
			reason: "a name that begins with openshift proves nothing", resource: deployment,
			metadata: "{name: loki, namespace: openshift-logging}",
		},
		"Kube": {reason: "nor does one that begins with kube", resource: deployment, metadata: "{name: ops, namespace: kube-ops}"},
		"Unnamed": {
			reason: "an operator that names no namespace names not all", resource: deployment,
			metadata: "{name: a, namespace: shop}",
		},
		"Cluster": {
			reason: "an object of the cluster is in no namespace", resource: "storage.k8s.io/storageclasses",
			metadata: "{name: gold}",
		},
		"OwnedUnread": {
			reason: "the owner of an object is followed by who has it", resource: deployment,
			metadata: "{name: a, namespace: b, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: x, uid: u}]}",
		},
	} {
		group, resource, _ := strings.Cut(tc.resource, "/")
		object := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: X, metadata: "+tc.metadata+"}"), &object.Object); err != nil {
			t.Fatal(err)
		}
		if got := owners().Proves(schema.GroupResource{Group: group, Resource: resource}, object); got != tc.want {
			t.Errorf("%s: %t, want %t: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestNamespaces(t *testing.T) {
	for namespace, want := range map[string]bool{
		"openshift-ingress": true, "openshift-dns": true, "openshift-operators": false, "openshift-ingress-operator": false, "openshift": false,
		"kube-system": false, "": false,
	} {
		if got := owners().Namespace(namespace); got != want {
			t.Errorf("%q: %t, want %t", namespace, got, want)
		}
		ofName := strings.HasPrefix(namespace, "openshift") && namespace != "openshift-operators" || namespace == "kube-system"
		if (ownership.Owners{}).Namespace(namespace) != ofName {
			t.Errorf("without any operator, %q is of the release: %t, want %t", namespace, !ofName, ofName)
		}
	}
}

// An operator that names no namespace, or no name in one, does not name all namespaces.
func TestNamespaceWithoutName(t *testing.T) {
	nameless := ownership.Of(
		[]configv1.ClusterOperator{{Status: configv1.ClusterOperatorStatus{RelatedObjects: []configv1.ObjectReference{
			{Resource: "namespaces"},
			{},
		}}}})
	if nameless.Namespace("shop") {
		t.Error("each namespace is of the release")
	}
}

// The operator of the API server names all definitions and all webhooks for who gathers them (openshift/cluster-kube-apiserver-operator,
// pkg/operator/starter.go): that does not make those of users the release's.
func TestAllOfTheAPIServer(t *testing.T) {
	var related []configv1.ObjectReference
	for group, resource := range map[string]string{
		"apiextensions.k8s.io":         "customresourcedefinitions",
		"admissionregistration.k8s.io": "validatingwebhookconfigurations",
	} {
		related = append(related, configv1.ObjectReference{Group: group, Resource: resource})
	}
	of := ownership.Of([]configv1.ClusterOperator{{Status: configv1.ClusterOperatorStatus{RelatedObjects: related}}})
	object := &unstructured.Unstructured{}
	object.SetName("kyverno-policy-validating-webhook-cfg")
	for _, each := range related {
		if of.Proves(schema.GroupResource{Group: each.Group, Resource: each.Resource}, object) {
			t.Errorf("the %s of a user are of the release", each.Resource)
		}
	}
}

// What an operator names one by one is known by its operator.
func TestNamed(t *testing.T) {
	named := owners().Named
	if len(named["dns"]) != 1 || named["dns"][0].Name != "default" || len(named["machine-config"]) != 1 || len(named["ingress"]) != 0 ||
		len(named["olm"]) != 0 {
		t.Errorf("%+v", named)
	}
}
