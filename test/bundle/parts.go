package bundle

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/openshift/update-preflight/collector/update"
)

const (
	csvKind  = "ClusterServiceVersion"
	rbac     = "rbac.authorization.k8s.io"
	promGate = "monitoring.coreos.com"
)

// release is a minor version of OpenShift.
type release semver.Version

// line is the release as 4.20.
func (r release) line() string { return update.Line(semver.Version(r)) }

// oldestCluster is the oldest OpenShift whose cluster-version operator the product knows (collector/cvo).
func oldestCluster() release { return release{Major: 4, Minor: 14} }

// carried are the kinds that OLM installs from a bundle and that the manifests may have, each with the first OpenShift
// whose OLM does (operator-registry, pkg/lib/bundle/supported_resources.go; operator-lifecycle-manager,
// pkg/controller/operators/catalog/supportedresources.go). An older OLM fails the installation for such an object.
func carried() map[schema.GroupKind]release {
	always := release{Major: 4, Minor: 1}
	return map[schema.GroupKind]release{
		{Kind: "ConfigMap"}: always, {Kind: "Secret"}: always, {Kind: "Service"}: always, {Kind: "ServiceAccount"}: always,
		{Group: promGate, Kind: "PrometheusRule"}: always, {Group: promGate, Kind: "ServiceMonitor"}: always,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: {Major: 4, Minor: 20},
	}
}

// render builds the kustomization of a directory as "oc apply -k" does.
func render(directory string) ([]*unstructured.Unstructured, error) {
	infos, err := resource.NewLocalBuilder().Unstructured().Local().
		FilenameParam(false, &resource.FilenameOptions{Kustomize: directory}).Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", directory, err)
	}
	var rendered []*unstructured.Unstructured
	for _, info := range infos {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%s is a %T", info.Name, info.Object)
		}
		rendered = append(rendered, object)
	}
	return rendered, nil
}

// parts are the rendered objects, by what a bundle makes of them.
type parts struct {
	namespace, deployment *unstructured.Unstructured
	// account is the name of the ServiceAccount of the Deployment.
	account string
	crds    []*unstructured.Unstructured
	// roles and bindings are those of any scope.
	roles, bindings []*unstructured.Unstructured
	// others become objects of the bundle as they are.
	others []*unstructured.Unstructured
	// oldest is the first OpenShift that installs the bundle.
	oldest release
}

// sortParts sorts the objects. One that no bundle can carry is an error.
func sortParts(rendered []*unstructured.Unstructured) (parts, error) {
	p := parts{oldest: oldestCluster()}
	var failures []error
	for _, object := range rendered {
		failures = append(failures, p.add(object))
	}
	if err := errors.Join(failures...); err != nil {
		return parts{}, err
	}
	if p.deployment == nil || p.namespace == nil {
		return parts{}, errors.New("the manifests have no Deployment or no Namespace")
	}
	var err error
	if p.account, _, err = unstructured.NestedString(p.deployment.Object, "spec", "template", "spec", "serviceAccountName"); err != nil ||
		p.account == "" {
		return parts{}, fmt.Errorf("%s has no serviceAccountName: %w", named(p.deployment), err)
	}
	return p, p.check()
}

// add adds one object.
func (p *parts) add(object *unstructured.Unstructured) error {
	switch kind := object.GroupVersionKind().GroupKind(); kind {
	case schema.GroupKind{Kind: "Namespace"}:
		return only(&p.namespace, object)
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return only(&p.deployment, object)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		p.crds = append(p.crds, object)
	case schema.GroupKind{Group: rbac, Kind: "Role"}, schema.GroupKind{Group: rbac, Kind: "ClusterRole"}:
		p.roles = append(p.roles, object)
	case schema.GroupKind{Group: rbac, Kind: "RoleBinding"}, schema.GroupKind{Group: rbac, Kind: "ClusterRoleBinding"}:
		p.bindings = append(p.bindings, object)
	default:
		since, ok := carried()[kind]
		if !ok {
			return fmt.Errorf("a bundle cannot carry %s: OLM does not install this kind, or test/bundle does not know that it does", named(object))
		}
		if semver.Version(since).GT(semver.Version(p.oldest)) {
			p.oldest = since
		}
		p.others = append(p.others, object)
	}
	return nil
}

// only stores the one object of its kind.
func only(place **unstructured.Unstructured, object *unstructured.Unstructured) error {
	if *place != nil {
		return fmt.Errorf("the bundle has one %s, and the manifests have %s and %s", object.GetKind(), named(*place), named(object))
	}
	*place = object
	return nil
}

// check returns an error for what would be lost, and removes the ServiceAccount, which OLM creates.
func (p *parts) check() error {
	if len(p.deployment.GetAnnotations()) > 0 {
		return fmt.Errorf("%s has annotations, and OLM sets none", named(p.deployment))
	}
	var failures []error
	for _, object := range append(slices.Clone(p.others), p.deployment) {
		if object.GetNamespace() != "" && object.GetNamespace() != p.namespace.GetName() {
			failures = append(failures, fmt.Errorf("a bundle cannot carry %s: OLM creates objects in the namespace of the operator, which is %s",
				named(object), p.namespace.GetName()))
		}
	}
	p.others = slices.DeleteFunc(p.others, func(object *unstructured.Unstructured) bool {
		own := object.GetKind() == "ServiceAccount" && object.GetName() == p.account
		if own {
			failures = append(failures, plainAccount(object))
		}
		return own
	})
	return errors.Join(failures...)
}

// plainAccount returns an error for a ServiceAccount with more than OLM creates. Labels are not missed.
func plainAccount(object *unstructured.Unstructured) error {
	var account corev1.ServiceAccount
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &account); err != nil {
		return err
	}
	if len(account.Annotations)+len(account.Secrets)+len(account.ImagePullSecrets) > 0 || account.AutomountServiceAccountToken != nil {
		return fmt.Errorf("%s has more than a name, which the ServiceAccount that OLM creates does not have", named(object))
	}
	return nil
}

// named is an object in messages.
func named(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
}

func lower(text string) string { return strings.ToLower(text) }
