// Package sample answers: what is this cluster like now?
//
// [Take] reads a [baseline.State]. It does not read again what checks of the same run have read through the
// snapshot. A list that cannot be read, or that an archive contains only in part, is recorded in the State and is
// not an error: a missing permission must not make a cluster look good, nor keep the rest from being compared.
package sample

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/ownership"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	"github.com/openshift/update-preflight/collector/words"
)

// Reads are the requests of [Take]. All are optional but the one for the ClusterVersion.
func Reads() []access.Request {
	needs := []access.Request{{Verb: "get", Group: configv1.GroupName, Resource: "clusterversions", Name: "version"}}
	for _, each := range []schema.GroupVersionResource{
		configv1.GroupVersion.WithResource("clusteroperators"), machineconfigurationv1.GroupVersion.WithResource("machineconfigpools"),
		machinev1beta1.GroupVersion.WithResource("machinesets"), corev1.SchemeGroupVersion.WithResource("nodes"), csiNodes(),
		certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), appsv1.SchemeGroupVersion.WithResource("deployments"),
		appsv1.SchemeGroupVersion.WithResource("statefulsets"), appsv1.SchemeGroupVersion.WithResource("daemonsets"),
		corev1.SchemeGroupVersion.WithResource("replicationcontrollers"),
		corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("services"),
		discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), routes(), ingressControllers(),
		{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		validatingWebhooks(), mutatingWebhooks(), claims(), storageClasses(), csiDrivers(), attachments(),
		{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"},
		{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "subscriptions"},
		egressIPs(), egressFirewalls(), corev1.SchemeGroupVersion.WithResource("namespaces"),
		// Of the kinds without a row, these belong to Kubernetes and OpenShift; ClusterRole cluster-reader covers the
		// kinds of operators that users install.
		{Resource: "persistentvolumes"},
		{Resource: "resourcequotas"},
		{Group: "batch", Resource: "cronjobs"},
		{Group: "batch", Resource: "jobs"},
		{Group: "autoscaling", Resource: "horizontalpodautoscalers"},
		{Group: "networking.k8s.io", Resource: "ingresses"},
		{Group: "policy", Resource: "poddisruptionbudgets"},
		{Group: "apps.openshift.io", Resource: "deploymentconfigs"},
		{Group: "image.openshift.io", Resource: "imagestreams"},
		{Group: "operators.coreos.com", Resource: access.All},
	} {
		needs = append(needs, access.Request{Verb: "list", Group: each.Group, Resource: each.Resource})
	}
	for _, group := range reported.Groups() {
		needs = append(needs, access.Request{Verb: "list", Group: group, Resource: access.All})
	}
	return append(needs, monitoring.Reads()...)
}

func csiNodes() schema.GroupVersionResource {
	return storagev1.SchemeGroupVersion.WithResource("csinodes")
}

func csiDrivers() schema.GroupVersionResource {
	return storagev1.SchemeGroupVersion.WithResource("csidrivers")
}

func storageClasses() schema.GroupVersionResource {
	return storagev1.SchemeGroupVersion.WithResource("storageclasses")
}

func attachments() schema.GroupVersionResource {
	return storagev1.SchemeGroupVersion.WithResource("volumeattachments")
}

func claims() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
}

func validatingWebhooks() schema.GroupVersionResource {
	return admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
}

func mutatingWebhooks() schema.GroupVersionResource {
	return admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")
}

func routes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "route.openshift.io", Version: "v1", Resource: "routes"}
}

func ingressControllers() schema.GroupVersionResource {
	return operatorv1.GroupVersion.WithResource("ingresscontrollers")
}

func egressIPs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "egressips"}
}

func egressFirewalls() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "egressfirewalls"}
}

// Take reads the state of a cluster at a time of the cluster's clock: with of, the state of the guest of a hosted
// cluster, which its management cluster has; nil for other clusters. client is nil for a cluster whose monitoring
// is not read. The error is about the ClusterVersion, or comes from ctx.
func Take(ctx context.Context, cluster *snapshot.Cluster, of *hypershift.State, client *monitoring.Client,
	now time.Time,
) (baseline.State, error) {
	return Look{Cluster: cluster, Hosted: of, Monitoring: client, Now: now}.Take(ctx)
}

// Look is the result of one reading.
type Look struct {
	Cluster *snapshot.Cluster
	// Hosted is the hosted cluster of a guest, and Monitoring the client that reads alerts; nil for none.
	Hosted     *hypershift.State
	Monitoring *monitoring.Client
	Now        time.Time
	// Kinds limits the kinds without a row that are read; nil for all.
	Kinds map[baseline.Kind]bool
}

// Take is the function Take.
func (l Look) Take(ctx context.Context) (baseline.State, error) {
	cluster, of, client, now, kinds := l.Cluster, l.Hosted, l.Monitoring, l.Now, l.Kinds
	version, err := cluster.ClusterVersion(ctx)
	if err != nil {
		return baseline.State{}, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
	}
	s := &sampler{cluster: cluster, now: now, state: baseline.State{
		Taken: now, ClusterID: string(version.Spec.ClusterID), Version: version.Status.Desired.Version, Image: version.Status.Desired.Image,
		Objects: map[baseline.Key]baseline.Object{}, Unread: map[baseline.Kind]string{}, APIs: map[baseline.Kind]baseline.API{},
		Leaving: map[string]bool{}, Deleting: map[baseline.Key]bool{},
	}}
	readAhead(ctx, cluster)
	operators := read(ctx, s, s.cluster.ClusterOperators, "ClusterOperators", baseline.ClusterOperator)
	s.owners = ownership.Of(operators)
	s.namespaces(ctx)
	s.definitions(ctx)
	s.others(ctx, kinds)
	s.clusterVersion(version)
	s.operators(operators, version)
	machinery{s}.pools(ctx, of)
	machinery{s}.nodes(ctx)
	(&workloads{sampler: s, found: map[baseline.Key]baseline.Object{}, sets: map[baseline.Key]baseline.Key{}}).read(ctx)
	(&serving{sampler: s}).read(ctx)
	configured{s}.routing(ctx)
	volumes{s}.storage(ctx)
	configured{s}.installed(ctx)
	configured{s}.egress(ctx)
	readAlerts(ctx, s, client)
	s.inherit()
	return s.state, ctx.Err()
}

// sampler makes one State.
type sampler struct {
	cluster *snapshot.Cluster
	now     time.Time
	state   baseline.State
	owners  ownership.Owners
	// pods are all pods, and controllers what makes each of them again.
	pods        []corev1.Pod
	controllers map[*corev1.Pod]baseline.Key
	// defined are the resources of CustomResourceDefinitions.
	defined map[string]bool
}

// parallelism bounds the lists that are read at a time.
const parallelism = 4

// readAhead reads all lists that no check has read yet side by side, so that together they take as long as the longest one. Who
// needs one gets it from the snapshot, with its error.
func readAhead(ctx context.Context, cluster *snapshot.Cluster) {
	ahead(ctx, cluster.Pods)()
	var group errgroup.Group
	group.SetLimit(parallelism)
	for _, read := range []func(){
		ahead(ctx, cluster.Deployments), ahead(ctx, cluster.StatefulSets),
		ahead(ctx, cluster.DaemonSets), ahead(ctx, cluster.ReplicationControllers), ahead(ctx, cluster.Services),
		ahead(ctx, cluster.EndpointSlices),
		ahead(ctx, cluster.Nodes), ahead(ctx, cluster.MachineConfigPools), ahead(ctx, cluster.MachineSets), ahead(ctx, cluster.ClusterOperators),
		ahead(ctx, cluster.CertificateSigningRequests), ahead(ctx, cluster.APIServices), ahead(ctx, cluster.Definitions),
		ahead(ctx, cluster.InstalledOperators), ahead(ctx, cluster.Subscriptions),
		ahead(ctx, listOf[corev1.PersistentVolumeClaim](cluster, claims())),
		ahead(ctx, listOf[storagev1.StorageClass](cluster, storageClasses())),
		ahead(ctx, listOf[storagev1.CSINode](cluster, csiNodes())), ahead(ctx, listOf[metav1.PartialObjectMetadata](cluster, csiDrivers())),
		ahead(ctx, listOf[attachment](cluster, attachments())), ahead(ctx, listOf[route](cluster, routes())),
		ahead(ctx, listOf[ingressController](cluster, ingressControllers())), ahead(ctx, listOf[egressIP](cluster, egressIPs())),
		ahead(ctx, listOf[egressFirewall](cluster, egressFirewalls())),
		ahead(ctx, listOf[admissionregistrationv1.ValidatingWebhookConfiguration](cluster, validatingWebhooks())),
		ahead(ctx, listOf[admissionregistrationv1.MutatingWebhookConfiguration](cluster, mutatingWebhooks())),
	} {
		group.Go(func() error {
			read()
			return nil
		})
	}
	_ = group.Wait() // no reading is an error here
}

// ahead reads a list into the snapshot, whose reader finds an error there.
func ahead[T any](ctx context.Context, list func(context.Context) ([]T, error)) func() {
	return func() { _, _ = list(ctx) }
}

// listOf lists a resource without a method of the snapshot.
func listOf[T any](cluster *snapshot.Cluster, of schema.GroupVersionResource) func(context.Context) ([]T, error) {
	return func(ctx context.Context) ([]T, error) { return snapshot.List[T](ctx, cluster, of) }
}

// read reads a list for kinds of objects. If the list is incomplete, these kinds are unread, including the kinds
// that are evaluated by it. An API that is not served has no objects.
func read[T any](ctx context.Context, s *sampler, list func(context.Context) ([]T, error), plural string, kinds ...baseline.Kind) []T {
	ctx, missing := gap.Watch(ctx)
	all, err := list(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		s.unread(fmt.Errorf("could not list the %s: %w", plural, err), kinds...)
		return nil
	case missing.Err() != nil:
		s.unread(missing.Err(), kinds...)
	}
	return all
}

// readAs is read for a resource without a method of the snapshot.
func readAs[T any](ctx context.Context, s *sampler, of schema.GroupVersionResource, kinds ...baseline.Kind) []T {
	return read(ctx, s, listOf[T](s.cluster, of), of.Resource, kinds...)
}

// unread notes that kinds were not read completely; the first cause of each is kept.
func (s *sampler) unread(cause error, kinds ...baseline.Kind) {
	text := words.External(cause.Error())
	if known, ok := errors.AsType[*monitoring.Error](cause); ok {
		text = words.External(known.Message)
	}
	for _, kind := range kinds {
		if s.state.Unread[kind] == "" {
			s.state.Unread[kind] = text
		}
	}
}

// complete reports whether all of a kind was read so far.
func (s *sampler) complete(kind baseline.Kind) bool { return s.state.Unread[kind] == "" }

// keep puts an object into the State, but one of a namespace that is being deleted: who deletes that wants none of them. Of two
// with one key the second has the facts, and both have the problems.
func (s *sampler) keep(key baseline.Key, object baseline.Object) {
	if s.state.Leaving[key.Namespace] {
		return
	}
	if known, exists := s.state.Objects[key]; exists {
		for _, problem := range object.Problems {
			known.Add(problem)
		}
		object.Problems = known.Problems
	}
	s.state.Objects[key] = object
}

// deletable is an object that may be being deleted.
type deletable[T any] interface {
	*T
	metav1.Object
}

// kept are the objects that are not being deleted: who deletes an object does not want it to be good, and a finalizer may
// keep it, and its namespace, for as long as it likes.
func kept[T any, P deletable[T]](s *sampler, kind baseline.Kind, all []T) []T {
	var made []T // without copies where nothing is being deleted, as is usual
	for i := range all {
		deleted := P(&all[i]).GetDeletionTimestamp() != nil
		if deleted {
			s.state.Deleting[baseline.Key{Kind: kind, Namespace: P(&all[i]).GetNamespace(), Name: P(&all[i]).GetName()}] = true
		}
		switch {
		case deleted && made == nil:
			made = append([]T{}, all[:i]...) // the snapshot has the list, too
		case !deleted && made != nil:
			made = append(made, all[i])
		}
	}
	if made == nil {
		return all
	}
	return made
}

// maxFact bounds a fact that is compared, in bytes.
const maxFact = 1 << 10

// fact is a text from outside that is compared.
func fact(text string) string { return words.Line(text, maxFact) }

// clause returns the reason and the message of a condition or another object, as one message.
func clause(reason, message string) string {
	switch {
	case message == "":
		return words.External(reason)
	case reason == "":
		return words.External(message)
	}
	return words.External(reason + ": " + message)
}

// at is a time of an object in UTC.
func at(of metav1.Time) time.Time {
	if of.IsZero() {
		return time.Time{}
	}
	return of.UTC()
}
