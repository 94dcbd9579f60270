package manifests_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/hostedruns"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// needs are the permissions of the program: those of the controller and of every switch, and
// those to hold the Lease of the leader and to report the leader in Events.
func needs() access.Needs {
	lease := access.Request{Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace}
	named := lease
	named.Name = name
	leader := access.Needs{Required: append(access.Verbs(lease, "create"), access.Verbs(named, "get", "update")...)}
	for _, group := range []string{"", "events.k8s.io"} {
		event := access.Request{Group: group, Resource: "events", Namespace: namespace}
		leader.Required = append(leader.Required, access.Verbs(event, "create", "patch")...)
	}
	everySwitch := guard.Choice{Alert: true, ClusterOperator: true, Admission: guard.Deny}
	return controller.Needs().And(guard.Choice{}.Needs()).And(everySwitch.Needs()).And(hostedguard.Needs("")).And(leader)
}

func TestRBACIsCurrent(t *testing.T) {
	const comment = `# Generated from the permissions that the packages declare, by
# go test ./test/manifests -update
#
# A user who may create Jobs in a namespace can run them as any of its ServiceAccounts, and
# a user who may create Secrets in the namespace openshift-cluster-version can get a token
# of any of its ServiceAccounts. The controller has both permissions.
`
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	var objects []any
	for _, object := range needs().Roles(name, subjects) {
		objects = append(objects, object)
	}
	expectCurrent(t, "base/rbac.yaml", write(t, comment, objects))
}

// The permissions for hosted clusters are a part of their own, of management clusters.
func TestHostedRBACIsCurrent(t *testing.T) {
	const comment = `# Generated from the permissions that the packages declare, by
# go test ./test/manifests -update
#
# The Secrets with the kubeconfigs of the guests, which the HostedClusters name, are those of
# administrators of the guests: the controller can do everything there.
`
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	var objects []any
	for _, object := range hostedruns.Needs().And(hostedguard.Needs(guard.Deny)).Roles(hostedName, subjects) {
		objects = append(objects, object)
	}
	expectCurrent(t, "switches/hosted-clusters/rbac.yaml", write(t, comment, objects))
}

// hostedName is the name of the roles for hosted clusters.
const hostedName = "update-preflight-hosted"

// hosted are the policies for hosted clusters, those that deny first.
func hosted() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
		for _, each := range hostedguard.Names() {
			policy := stub("admissionregistration.k8s.io/v1", kind, "")
			policy.SetName(each)
			all = append(all, policy)
		}
	}
	return all
}

// guards are the objects that the controller creates for CVO, those that deny first.
func guards() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		stub("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", ""),
		stub("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", ""),
		stub("config.openshift.io/v1", "ClusterOperator", ""),
		stub("v1", "ConfigMap", published.Namespace),
		stub("monitoring.coreos.com/v1", "PrometheusRule", namespace),
	}
}

// ofConsole are the objects that the controller creates for the web console.
func ofConsole() []*unstructured.Unstructured {
	dashboard := stub("v1", "ConfigMap", console.Namespace)
	dashboard.SetName(console.Dashboard)
	return []*unstructured.Unstructured{
		dashboard, stub(consoleVersion, "ConsoleNotification", ""), stub(consoleVersion, "ConsoleLink", ""),
		stub(consoleVersion, "ConsoleCLIDownload", ""),
	}
}

// consoleVersion is the API of the web console, which a cluster without OpenShift does not have.
const consoleVersion = "console.openshift.io/v1"

func stub(version, kind, namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// names are an object without its content.
func names(object *unstructured.Unstructured) any {
	metadata := map[string]string{"name": object.GetName()}
	if object.GetNamespace() != "" {
		metadata["namespace"] = object.GetNamespace()
	}
	return map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata}
}

// rank orders the objects for their removal.
func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "ClusterRoleBinding", "RoleBinding":
		return 0
	case "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ClusterOperator", "PrometheusRule":
		return 1
	case "ConfigMap":
		if object.GetNamespace() == published.Namespace && object.GetName() == published.Name {
			return 1
		}
	case "Namespace":
		return 3
	case "ConsoleNotification", "ConsoleLink", "ConsoleCLIDownload":
		return 4
	}
	return 2
}

func TestUninstallIsCurrent(t *testing.T) {
	const comment = `# Generated from the manifests, by go test ./test/manifests -update
#
# Everything that was installed, and the objects of the switches, in the order in which they
# are deleted: the controller loses its permissions, so that it cannot apply a switch again;
# the switches, which would guard updates without it; the rest.
`
	for name, tc := range map[string]struct {
		reason, directory, file string
		switches                []string
		openshift               bool
	}{
		"OpenShift": {
			reason: "all objects", directory: ".", file: "uninstall.yaml", switches: []string{"hosted-clusters", "page", "signing"},
			openshift: true,
		},
		"Kubernetes": {
			reason: "kubectl fails for kinds that the cluster does not have", directory: "kubernetes",
			file: "kubernetes/uninstall.yaml", switches: []string{"hosted-clusters", "signing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := slices.Concat(hosted(), guards(), ofConsole(), overlay(t, tc.directory, tc.switches...))
			slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
			var stubs []any
			for _, each := range all {
				if tc.openshift || each.GetKind() != "PrometheusRule" && each.GetAPIVersion() != consoleVersion {
					stubs = append(stubs, names(each))
				}
			}
			expectCurrent(t, tc.file, write(t, comment, stubs))
		})
	}
}
