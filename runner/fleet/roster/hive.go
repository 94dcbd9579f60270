package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
)

// clusterDeployment is what is read of a ClusterDeployment (hive.openshift.io/v1).
type clusterDeployment struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Installed       bool             `json:"installed"`
		PowerState      string           `json:"powerState"`
		ClusterPoolRef  *struct{}        `json:"clusterPoolRef"`
		ClusterMetadata *clusterMetadata `json:"clusterMetadata"`
	} `json:"spec"`
	Status struct {
		PowerState string `json:"powerState"`
	} `json:"status"`
}

type clusterMetadata struct {
	ClusterID                string `json:"clusterID"`
	AdminKubeconfigSecretRef struct {
		Name string `json:"name"`
	} `json:"adminKubeconfigSecretRef"`
}

// Hive are the clusters of the ClusterDeployments of a cluster, which are reached by their admin
// kubeconfigs, and notices about those that are left out: the clusters of ClusterPools, which are not
// updated but replaced. An *input.Error is about a cluster without Hive.
func Hive(ctx context.Context, hub *cluster.Cluster, connect Connect) (members []Member, notices []string, err error) {
	objects, err := listAll(ctx, hub, clusterDeployments())
	if err != nil {
		return nil, nil, err
	}
	var pooled []string
	for i := range objects {
		of, object := memberOf(&objects[i], "ClusterDeployment"), objectOf(hub, &objects[i])
		var deployment clusterDeployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &deployment); err != nil {
			members = append(members, failed(of, failure("ClusterDeploymentInvalid", fmt.Errorf("the ClusterDeployment cannot be decoded: %w", err))))
			continue
		}
		if deployment.Spec.ClusterPoolRef != nil {
			pooled = append(pooled, of.Name)
			continue
		}
		member := deployment.member(hub, of, connect)
		member.known = object
		members = append(members, member)
	}
	if len(pooled) > 0 {
		notices = append(notices, fmt.Sprintf("%s of ClusterPools left out: %s", words.Count(len(pooled), "cluster"), words.List(pooled, maxListed)))
	}
	return members, notices, nil
}

// clusterDeployments is the resource of Hive.
func clusterDeployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "hive.openshift.io", Version: "v1", Resource: "clusterdeployments"}
}

// HiveNeeds are the permissions to list the clusters of Hive and to reach them.
func HiveNeeds() access.Needs {
	return access.Needs{Required: []access.Request{
		{Verb: "list", Group: clusterDeployments().Group, Resource: clusterDeployments().Resource},
		{Verb: "get", Resource: "secrets"},
	}}
}

// maxListed bounds the names in a notice.
const maxListed = 20

// stopped are the power states of a cluster that is stopped, stopping or starting: its
// ClusterOperators and certificates are not those of a cluster that runs.
func stopped() []string {
	return []string{
		"Hibernating", "Stopping", "WaitingForMachinesToStop", "FailedToStop", "FailedToStopMachines", "StartingMachines", "FailedToStartMachines",
		"WaitingForMachines", "WaitingForNodes", "PausingForClusterOperatorsToSettle", "WaitingForClusterOperators",
	}
}

func (d *clusterDeployment) member(hub *cluster.Cluster, of fleet.Cluster, connect Connect) Member {
	switch {
	case d.DeletionTimestamp != nil:
		return Member{Cluster: of, State: fleet.NotInstalled, Message: "its ClusterDeployment is being deleted"}
	case !d.Spec.Installed:
		return Member{Cluster: of, State: fleet.NotInstalled, Message: "spec.installed of its ClusterDeployment is false"}
	case slices.Contains(stopped(), d.Status.PowerState):
		return Member{Cluster: of, State: fleet.Hibernating, Message: "status.powerState of its ClusterDeployment is " + d.Status.PowerState}
	case d.Spec.PowerState == "Hibernating":
		return Member{Cluster: of, State: fleet.Hibernating, Message: "spec.powerState of its ClusterDeployment is Hibernating"}
	case d.Spec.ClusterMetadata == nil || d.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name == "":
		return failed(of, failure("ClusterDeploymentInvalid", errors.New("its ClusterDeployment names no Secret with a kubeconfig")))
	}
	known := *d.Spec.ClusterMetadata
	of.ID = known.ClusterID
	namespace := d.Namespace
	secret := SecretRef{Namespace: namespace, Name: known.AdminKubeconfigSecretRef.Name}
	return Member{Cluster: of, Flags: []string{"kubeconfig", strings.ReplaceAll(of.Name, "/", "-") + ".kubeconfig"}, Secret: secret, open: func(ctx context.Context) (Connection, error) {
		return reachBySecret(ctx, hub, namespace, known, connect)
	}}
}

// reachBySecret connects to the cluster of an admin kubeconfig, which must be the one that Hive knows.
func reachBySecret(ctx context.Context, hub *cluster.Cluster, namespace string, known clusterMetadata, connect Connect) (Connection, error) {
	name := known.AdminKubeconfigSecretRef.Name
	secret, err := hub.Kubernetes.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Connection{}, secretFailure(namespace, name, err)
	}
	config, err := hosted.ParseKubeconfig(secret.Data["kubeconfig"])
	if err != nil {
		return Connection{}, &Failure{
			Err: fmt.Errorf("key kubeconfig of Secret %s/%s: %w", namespace, name, err), Reason: "KubeconfigInvalid",
			Remedy: "Correct the Secret, which the ClusterDeployment names as the one with the admin kubeconfig.",
		}
	}
	reached, err := observed(config, connect)
	if err != nil {
		return Connection{}, failure("KubeconfigInvalid", err)
	}
	version, err := reached.Cluster.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return reached, fmt.Errorf("could not read ClusterVersion: %w", err)
	}
	if id := string(version.Spec.ClusterID); known.ClusterID != "" && !strings.EqualFold(id, known.ClusterID) {
		return Connection{}, failure("OtherCluster",
			fmt.Errorf("the kubeconfig of Secret %s/%s is of another cluster: Hive knows the ID %s, and it has %q", namespace, name, known.ClusterID, id))
	}
	return reached, nil
}

// secretFailure is about the Secret with the kubeconfig of a cluster, which could not be read.
func secretFailure(namespace, name string, err error) error {
	err = fmt.Errorf("could not read Secret %s/%s with its kubeconfig: %w", namespace, name, err)
	switch {
	case apierrors.IsNotFound(err):
		return failure("KubeconfigMissing", err)
	case apierrors.IsForbidden(err):
		return failure("KubeconfigForbidden", err)
	}
	return err
}

// memberOf is the cluster of an object: its name with its namespace, unless they are equal.
func memberOf(object *unstructured.Unstructured, kind string) fleet.Cluster {
	name := object.GetNamespace() + "/" + object.GetName()
	of := fleet.Cluster{Name: name, Source: kind + " " + name, Labels: object.GetLabels()}
	if object.GetNamespace() == object.GetName() {
		of.Name = object.GetName()
	}
	return of
}

// objectOf differs for objects of one name in several clusters: it is the API server that has the object, and
// the UID.
func objectOf(of *cluster.Cluster, object *unstructured.Unstructured) string {
	return serverOf(of.Config()) + " " + string(object.GetUID())
}

// listAll lists the objects of all namespaces by namespace and name, at most MaxMembers.
func listAll(ctx context.Context, of *cluster.Cluster, resource schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	const page = 500
	var all []unstructured.Unstructured
	for next := ""; ; {
		listed, err := of.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: page, Continue: next})
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			return nil, input.Errorf("the cluster does not serve %s.%s: name another one with --kubeconfig or --context", resource.Resource, resource.Group)
		case err != nil:
			return nil, fmt.Errorf("could not list %s.%s: %w", resource.Resource, resource.Group, err)
		}
		all = append(all, listed.Items...)
		if err := limit(len(all)); err != nil {
			return nil, err
		}
		if next = listed.GetContinue(); next == "" {
			break
		}
	}
	slices.SortFunc(all, func(a, b unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return all, nil
}
