package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/test/objects"
)

// managed is the label of everything that OLM creates.
const managed = "olm.managed"

// Bundle is a bundle that is installed as OLM v0 does it in a cluster with its CustomResourceDefinition of
// ClusterServiceVersions, for all namespaces: Open, Prepare, Install, Remove.
//
// What OLM does is that of operator-lifecycle-manager (pkg/controller/operators/catalog, ExecutePlan;
// pkg/controller/registry/resolver/rbac.go; pkg/controller/install/deployment.go). There are no catalog, InstallPlan and
// Subscription.
type Bundle struct {
	// Environment are the variables of spec.config.env of the Subscription.
	Environment map[string]string

	csv       *operatorsv1alpha1.ClusterServiceVersion
	csvObject *unstructured.Unstructured
	crds      []*unstructured.Unstructured
	others    []*unstructured.Unstructured
	namespace corev1.Namespace
}

// OpenBundle reads a bundle that was written to a directory.
func OpenBundle(directory string) (*Bundle, error) {
	read, err := manifests.GetBundleFromDir(directory)
	if err != nil {
		return nil, err
	}
	b := &Bundle{csv: read.CSV}
	for _, object := range read.Objects {
		switch object.GetKind() {
		case operatorsv1alpha1.ClusterServiceVersionKind:
			b.csvObject = object
		case "CustomResourceDefinition":
			b.crds = append(b.crds, object)
		default:
			b.others = append(b.others, object)
		}
	}
	if b.csvObject == nil {
		return nil, fmt.Errorf("%s has no ClusterServiceVersion among its objects", filepath.Join(directory, "manifests"))
	}
	return b, json.Unmarshal([]byte(b.csv.Annotations["operatorframework.io/suggested-namespace-template"]), &b.namespace)
}

// Namespace is that of the operator.
func (b *Bundle) Namespace() string { return b.namespace.Name }

// Example is the first example of the bundle.
func (b *Bundle) Example() ([]byte, error) {
	var examples []json.RawMessage
	if err := json.Unmarshal([]byte(b.csv.Annotations["alm-examples"]), &examples); err != nil {
		return nil, err
	}
	return examples[0], nil
}

// Prepare creates the namespace, as the console does, and the CustomResourceDefinitions.
func (b *Bundle) Prepare(ctx context.Context, config *rest.Config) error {
	all := []any{&b.namespace}
	for _, crd := range b.crds {
		all = append(all, crd)
	}
	return apply(ctx, config, all...)
}

// Install creates the ClusterServiceVersion, and what OLM creates for it.
func (b *Bundle) Install(ctx context.Context, config *rest.Config) error {
	csv := b.csvObject.DeepCopy()
	csv.SetNamespace(b.Namespace())
	csv.SetLabels(map[string]string{managed: "true"})
	csv.SetAnnotations(b.annotations())
	if err := apply(ctx, config, csv); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	created, err := client.Resource(versions()).Namespace(b.Namespace()).Get(ctx, b.csv.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := apply(ctx, config, b.objects(created.GetUID())...); err != nil {
		return err
	}
	writer, err := objects.New(config)
	if err != nil {
		return err
	}
	object := objects.Object{GroupVersionResource: versions(), Namespace: b.Namespace(), Name: b.csv.Name, Subresource: "status"}
	return writer.Patch(ctx, object,
		`{"status":{"phase":"Succeeded","reason":"InstallSucceeded","message":"install strategy completed with no errors"}}`)
}

// versions is the resource of ClusterServiceVersions.
func versions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"}
}

// annotations are those of the bundle and of an OperatorGroup of all namespaces. OLM sets all of them in the pods, too.
func (b *Bundle) annotations() map[string]string {
	all := maps.Clone(b.csv.Annotations)
	all["olm.operatorGroup"], all["olm.operatorNamespace"], all["olm.targetNamespaces"] = b.namespace.Name, b.Namespace(), ""
	return all
}

// apply applies objects in their order.
func apply(ctx context.Context, config *rest.Config, all ...any) error {
	writer, err := objects.New(config)
	if err != nil {
		return err
	}
	for _, each := range all {
		text, err := json.Marshal(each)
		if err != nil {
			return err
		}
		if err := writer.Apply(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// owner are the references of objects in the namespace of the ClusterServiceVersion.
func (b *Bundle) owner(uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.ClusterServiceVersionKind, Name: b.csv.Name, UID: uid,
	}}
}

// labels are those of what OLM finds by its owner.
func (b *Bundle) labels() map[string]string {
	return map[string]string{
		managed: "true", "olm.owner": b.csv.Name, "olm.owner.namespace": b.Namespace(),
		"olm.owner.kind": operatorsv1alpha1.ClusterServiceVersionKind,
	}
}

// objects are those that OLM creates for the ClusterServiceVersion with this UID.
func (b *Bundle) objects(uid types.UID) []any {
	var all []any
	for _, other := range b.others {
		object := other.DeepCopy()
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[managed] = "true"
		object.SetLabels(labels)
		if object.GetKind() != "ClusterRole" && object.GetKind() != "ClusterRoleBinding" {
			object.SetNamespace(b.Namespace())
		}
		if object.GroupVersionKind().Group != rbacv1.GroupName { // OLM leaves roles and bindings without an owner
			object.SetOwnerReferences(b.owner(uid))
		}
		all = append(all, object)
	}
	strategy := b.csv.Spec.InstallStrategy.StrategySpec
	accounts := map[string]bool{}
	for _, each := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		if !accounts[each.ServiceAccountName] {
			all = append(all, &corev1.ServiceAccount{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
				ObjectMeta: metav1.ObjectMeta{
					Name: each.ServiceAccountName, Namespace: b.Namespace(), Labels: map[string]string{managed: "true"},
					OwnerReferences: b.owner(uid),
				},
			})
		}
		accounts[each.ServiceAccountName] = true
	}
	for _, each := range strategy.Permissions {
		all = append(all, b.role(each, "Role", b.Namespace(), b.owner(uid))...)
	}
	for _, each := range strategy.ClusterPermissions {
		all = append(all, b.role(each, "ClusterRole", "", nil)...)
	}
	for _, each := range strategy.DeploymentSpecs {
		all = append(all, b.deployment(each, uid))
	}
	return all
}

// role are the role of this kind with permissions, and its binding. OLM names them by their content.
func (b *Bundle) role(permissions operatorsv1alpha1.StrategyDeploymentPermissions, kind, namespace string,
	owner []metav1.OwnerReference,
) []any {
	content := sha256.Sum256(fmt.Append(nil, kind, permissions))
	metadata := metav1.ObjectMeta{
		Name: b.csv.Name + "-" + hex.EncodeToString(content[:10]), Namespace: namespace, Labels: b.labels(), OwnerReferences: owner,
	}
	version := rbacv1.SchemeGroupVersion.String()
	return []any{
		&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}, ObjectMeta: metadata, Rules: permissions.Rules},
		&rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind + "Binding"}, ObjectMeta: metadata,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: metadata.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.Namespace(), Name: permissions.ServiceAccountName}},
		},
	}
}

// deployment is a Deployment of the install strategy.
func (b *Bundle) deployment(of operatorsv1alpha1.StrategyDeploymentSpec, uid types.UID) *appsv1.Deployment {
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: of.Name, Namespace: b.Namespace(), Labels: b.labels(), OwnerReferences: b.owner(uid)},
		Spec:       *of.Spec.DeepCopy(),
	}
	maps.Copy(deployment.Labels, of.Label)
	template := &deployment.Spec.Template
	annotations := b.annotations()
	for key, value := range template.Annotations {
		if _, set := annotations[key]; !set {
			annotations[key] = value
		}
	}
	template.Annotations = annotations
	deployment.Spec.RevisionHistoryLimit = new(int32(1))
	for i := range template.Spec.Containers {
		container := &template.Spec.Containers[i]
		container.Env = append(container.Env, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: b.csv.Name})
		for _, name := range slices.Sorted(maps.Keys(b.Environment)) {
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: b.Environment[name]})
		}
	}
	return deployment
}

// Remove deletes the ClusterServiceVersion as an administrator does, and its cluster roles as OLM does then. The garbage
// collector deletes what it owns; Remove returns when the pods are gone. The CustomResourceDefinitions, the namespace, and
// the roles and bindings that are objects of the bundle stay.
func (b *Bundle) Remove(ctx context.Context, config *rest.Config) error {
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := dynamicClient.Resource(versions()).Namespace(b.Namespace()).Delete(ctx, b.csv.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	owned := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(b.labels()).String()}
	if err := errors.Join(
		client.RbacV1().ClusterRoleBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, owned),
		client.RbacV1().ClusterRoles().DeleteCollection(ctx, metav1.DeleteOptions{}, owned),
	); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods(b.Namespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		deployments, err := client.AppsV1().Deployments(b.Namespace()).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items)+len(deployments.Items) == 0, err
	})
}
