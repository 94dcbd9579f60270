package drain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// createNamespaces creates the namespaces of the cluster, of which those of guards are shared.
func (t *Trial) createNamespaces(ctx context.Context) error {
	namespaces := map[string]bool{t.Created.Namespace: true}
	for i := range t.Created.Operated {
		namespaces[t.Created.Operated[i].Namespace] = true
	}
	for name := range namespaces {
		_, err := t.Clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		// Its controller may take longer than the first pod.
		_, err = t.Clients.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// create creates the objects of the cluster, and waits until they have settled.
func (t *Trial) create(ctx context.Context) error {
	if err := t.createNamespaces(ctx); err != nil {
		return err
	}
	if err := t.createOwners(ctx); err != nil {
		return err
	}
	if err := t.writeAll(ctx, t.Created.First()); err != nil {
		return err
	}
	if err := t.await(ctx); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := t.writeAll(ctx, t.Created.Late()); err != nil {
		return err
	}
	for i := range t.Created.Changes {
		// A pod may not exist, which no node has room for.
		if err := t.change(ctx, &t.Created.Changes[i]); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("change %s %s: %w", t.Created.Changes[i].Kind, t.Created.Changes[i].Name, err)
		}
		if !t.Created.Changes[i].Settles {
			continue
		}
		if err := t.await(ctx); err != nil {
			return fmt.Errorf("change %s %s: %w", t.Created.Changes[i].Kind, t.Created.Changes[i].Name, err)
		}
	}
	if err := t.await(ctx); err != nil {
		return fmt.Errorf("change: %w", err)
	}
	return nil
}

// begin creates what starts when the drains begin, and reads the cluster.
func (t *Trial) begin(ctx context.Context) error {
	if err := t.writeAll(ctx, t.Created.Last()); err != nil {
		return err
	}
	if err := t.awaitStart(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	t.before = t.read()
	return nil
}

// createOwners creates the objects of operators, which own pods and budgets.
func (t *Trial) createOwners(ctx context.Context) error {
	for i := range t.Created.Owners {
		made, err := t.write(ctx, &t.Created.Owners[i])
		if err != nil {
			return err
		}
		for _, pods := range [][]corev1.Pod{t.Created.Operated, t.Created.Pods} {
			for j := range pods {
				own(made, pods[j].OwnerReferences)
			}
		}
		for j := range t.Created.LateBudgets {
			own(made, t.Created.LateBudgets[j].OwnerReferences)
		}
	}
	return nil
}

// own adds the UID of an owner to the references to it.
func own(owner *unstructured.Unstructured, references []metav1.OwnerReference) {
	for i := range references {
		if of := &references[i]; of.Kind == owner.GetKind() && of.Name == owner.GetName() {
			of.UID = owner.GetUID()
		}
	}
}

func (t *Trial) writeAll(ctx context.Context, all []runtime.Object) error {
	for _, object := range all {
		if _, err := t.write(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// write creates an object, unless it exists. Of a new node it removes the taint.
func (t *Trial) write(ctx context.Context, object runtime.Object) (*unstructured.Unstructured, error) {
	made, err := generic(object)
	if err != nil {
		return nil, err
	}
	written, err := t.resource(made.GroupVersionKind(), made.GetNamespace()).Create(ctx, made, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create %s %s: %w", made.GetKind(), made.GetName(), err)
	}
	if node, ok := object.(*corev1.Node); ok {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": node.Spec.Taints}})
		if err != nil {
			return nil, err
		}
		if _, err := t.Clients.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// generic is an object with its kind.
func generic(object runtime.Object) (*unstructured.Unstructured, error) {
	if already, ok := object.(*unstructured.Unstructured); ok {
		return already, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	made := &unstructured.Unstructured{Object: content}
	if _, ok := object.(*machineconfigurationv1.MachineConfigPool); ok {
		made.SetGroupVersionKind(machineconfigurationv1.GroupVersion.WithKind("MachineConfigPool"))
		return made, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	made.SetGroupVersionKind(kinds[0])
	return made, nil
}

// resource is the client of the objects of a kind.
func (o *Oracle) resource(of schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(of)
	if namespace == "" {
		return o.objects.Resource(resource)
	}
	return o.objects.Resource(resource).Namespace(namespace)
}

func (t *Trial) change(ctx context.Context, of *lab.Change) error {
	resource := t.resource(of.GroupVersionKind, of.Namespace)
	if of.Patch == "" {
		return resource.Delete(ctx, of.Name, metav1.DeleteOptions{})
	}
	var below []string
	if of.Status {
		below = []string{"status"}
	}
	_, err := resource.Patch(ctx, of.Name, types.StrategicMergePatchType, []byte(of.Patch), metav1.PatchOptions{}, below...)
	return err
}

// remove deletes the cluster.
func (t *Trial) remove(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := errors.Join(t.release(ctx, lab.Foreign), t.releaseOwners(ctx)); err != nil {
		return err
	}
	if err := t.delete(ctx, slices.Concat(t.Created.Objects, t.Created.Reviewers), now); err != nil {
		return err
	}
	if err := t.Clients.CoreV1().Namespaces().Delete(ctx, t.Created.Namespace, now); err != nil {
		return err
	}
	mine := metav1.ListOptions{LabelSelector: lab.ClusterLabel + "=" + t.Created.Namespace}
	for i := range t.Created.Operated {
		if namespace := t.Created.Operated[i].Namespace; namespace != t.Created.Namespace {
			if err := t.Clients.CoreV1().Pods(namespace).DeleteCollection(ctx, now, mine); err != nil {
				return err
			}
			if err := t.Clients.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, now, mine); err != nil {
				return err
			}
		}
	}
	var pools []runtime.Object
	for i := range t.Created.Pools {
		pools = append(pools, &t.Created.Pools[i])
	}
	if err := t.delete(ctx, pools, now); err != nil {
		return err
	}
	if err := t.Clients.CoreV1().PersistentVolumes().DeleteCollection(ctx, now, mine); err != nil {
		return err
	}
	return t.Clients.CoreV1().Nodes().DeleteCollection(ctx, now, mine)
}

func (t *Trial) delete(ctx context.Context, all []runtime.Object, how metav1.DeleteOptions) error {
	for _, object := range all {
		made, err := generic(object)
		if err != nil {
			return err
		}
		if err := t.resource(made.GroupVersionKind(), made.GetNamespace()).Delete(ctx, made.GetName(), how); err != nil &&
			!apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// releaseOwners removes the finalizers of controllers and claims, which may be being deleted.
func (t *Trial) releaseOwners(ctx context.Context) error {
	for _, object := range t.Created.First() {
		made, err := generic(object)
		if err != nil {
			return err
		}
		if len(made.GetFinalizers()) == 0 {
			continue
		}
		_, err = t.resource(made.GroupVersionKind(), made.GetNamespace()).Patch(ctx, made.GetName(), types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// release removes a finalizer of pods that are being deleted.
func (t *Trial) release(ctx context.Context, finalizer string) error {
	found := t.read()
	for i := range found.Pods {
		pod := &found.Pods[i]
		if len(pod.Finalizers) == 0 || pod.Finalizers[0] != finalizer || finalizer == lab.Removed && pod.DeletionTimestamp == nil {
			continue
		}
		_, err := t.Clients.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
