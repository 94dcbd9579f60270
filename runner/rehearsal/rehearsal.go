// Package rehearsal answers: would this cluster accept the writes of the update?
//
// [Rehearsal.Findings] sends each write that the cluster-version operator (CVO) makes of a release as a server-side dry
// run, with CVO's identity, and then the pods that controllers would create from the changed templates. The API server
// answers as it will during the update, with its validation, webhooks, policies, quotas and Pod Security. Nothing is
// stored: the client can send nothing else (package dryrun), and a policy of the API server denies it (guard.go).
//
// # Limits
//
// Objects of kinds and in namespaces that the target brings cannot be rehearsed; they are counted and named, and do not
// pass. An answer that depends on changes by the update itself, such as a webhook that it replaces, is Unknown. Each
// write is rehearsed separately, against the present cluster. A webhook that stores something for a dry run, although
// it declares that it does not, cannot be ruled out.
package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
	"github.com/openshift/update-preflight/runner/rehearsal/merge"
	"github.com/openshift/update-preflight/runner/rehearsal/podtemplate"
)

// Mode is whether the writes of an update are rehearsed.
type Mode string

// The modes.
const (
	// Off rehearses nothing.
	Off Mode = ""
	// Guarded rehearses with a policy by which the API server denies all writes that are not dry runs.
	Guarded Mode = "guarded"
	// Unguarded rehearses without that policy: only the client itself sends nothing but dry runs.
	Unguarded Mode = "unguarded"
)

// Known reports whether the mode is one of these.
func (m Mode) Known() bool { return m == Off || m == Guarded || m == Unguarded }

// Rehearsal is a release whose writes are rehearsed in one cluster.
type Rehearsal struct {
	Cluster *cluster.Cluster
	Mode    Mode
	// Hosted is true for a hosted cluster, whose CVO runs in the management cluster with another identity.
	Hosted bool
	// Run is the ID of the run, which names and labels the guard; the cleanup of the run deletes a guard that is left.
	Run string
	// Owner is the UID of ClusterVersion, which CVO sets as the owner of its objects.
	Owner types.UID
	// Manifests are the manifests of the release for the cluster, in CVO's order.
	Manifests []payload.Definition
	// Progress is called with how many writes have an answer, from several goroutines.
	Progress func(done, total int)
}

// parallel bounds the requests at one time.
const parallel = 8

// Findings returns the rejected and changed writes, the writes without an answer, and the finding Rehearsal with the
// counts. An error concerns the rehearsal as a whole. The guard is deleted when it returns.
func (r Rehearsal) Findings(ctx context.Context) ([]finding.Finding, error) {
	begun, err := r.begin(ctx)
	if err != nil {
		return append(begun.end(ctx), notRehearsed(err)), nil
	}
	found, err := r.rehearse(ctx, begun.client)
	return append(found, begun.end(ctx)...), err
}

// session is a rehearsal whose writes may be asked for.
type session struct {
	client *dryrun.Client
	// guard denies everything else; nil without a guard.
	guard *guard
	// inForce is true once the guard was seen to deny.
	inForce bool
}

// begin creates the client, and waits until the guard denies everything else. After an error, nothing may be sent; the
// caller must end the session nevertheless.
func (r Rehearsal) begin(ctx context.Context) (begun session, err error) {
	switch {
	case r.Cluster.Fixed():
		return begun, errors.New("an archive has no API server")
	case r.Hosted:
		return begun, errors.New("the cluster-version operator of a hosted cluster has an identity of its management cluster")
	}
	begun.client, err = dryrun.New(r.Cluster.Config(), dryrun.Identity{User: r.operator(ctx), Rehearsal: r.Run})
	if err != nil || r.Mode == Unguarded {
		return begun, err
	}
	begun.guard = newGuard(r.Cluster.Kubernetes, r.Run)
	if err := begun.guard.create(ctx); err != nil {
		return begun, err
	}
	err = begun.guard.await(ctx, func(ctx context.Context, probe *unstructured.Unstructured) error {
		_, err := begun.client.Create(ctx, probeResource(), probe)
		return err
	})
	begun.inForce = err == nil
	return begun, err
}

// end deletes the guard, even if ctx is done, and returns remarks about it.
func (s session) end(ctx context.Context) []finding.Finding {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTime)
	defer cancel()
	if s.guard == nil {
		if s.client == nil {
			return nil
		}
		return []finding.Finding{finding.Warn(reasonUnguarded,
			"only the client prevented the rehearsal from storing objects: --rehearse=unguarded").Named(nameGuard)}
	}
	var found []finding.Finding
	if changed := s.guard.intact(ctx); s.inForce && changed != nil {
		found = append(found, finding.Unknown(reasonGuardLost, "the guard of the rehearsal did not stay in force: %v",
			changed).Named(nameGuard).Do(finding.Retry("")))
	}
	if failure := s.guard.delete(ctx); failure != nil {
		found = append(found, finding.Warn(reasonGuardLeft, "%v", failure).Named(nameGuard).Do(finding.Change("oc preflight cleanup --all")))
	}
	return found
}

// removalTime bounds the end of a rehearsal.
const removalTime = 15 * time.Second

// The identity of CVO, where its Deployment does not name another ServiceAccount.
const (
	operatorNamespace = "openshift-cluster-version"
	operatorAccount   = "default"
)

// operator is the user name of CVO.
func (r Rehearsal) operator(ctx context.Context) string {
	account := operatorAccount
	deployment, err := r.Cluster.Kubernetes.AppsV1().Deployments(operatorNamespace).Get(ctx, "cluster-version-operator", metav1.GetOptions{})
	if err == nil && deployment.Spec.Template.Spec.ServiceAccountName != "" {
		account = deployment.Spec.Template.Spec.ServiceAccountName
	}
	return fmt.Sprintf("system:serviceaccount:%s:%s", operatorNamespace, account)
}

// rehearse asks for all writes, and then for the pods that they make.
func (r Rehearsal) rehearse(ctx context.Context, client *dryrun.Client) ([]finding.Finding, error) {
	served, err := kindsOf(ctx, r.Cluster.Kubernetes.Discovery(), r.Manifests)
	if err != nil {
		return nil, err
	}
	proxy, err := r.proxy(ctx)
	if err != nil {
		return nil, err
	}
	by := &writer{client: client, kinds: served, proxy: proxy, owner: r.Owner}
	writes := make([]write, len(r.Manifests))
	r.each(ctx, len(writes), func(ctx context.Context, i int) { writes[i] = by.ask(ctx, r.Manifests[i]) })
	// What failed for the moment is asked once more, as CVO does.
	r.again(ctx, len(writes), func(i int) bool { return writes[i].answer.Temporary },
		func(ctx context.Context, i int) { writes[i] = by.ask(ctx, r.Manifests[i]) })
	var remade []write
	for _, each := range writes {
		if each.remade() {
			remade = append(remade, each)
		}
	}
	makes := &podAsker{client: client, cluster: r.Cluster.Kubernetes}
	pods := make([]pod, len(remade))
	r.again(ctx, len(remade), func(int) bool { return true }, func(ctx context.Context, i int) { pods[i] = makes.ask(ctx, remade[i]) })
	r.again(ctx, len(remade), func(i int) bool { return pods[i].answer.Temporary },
		func(ctx context.Context, i int) { pods[i] = makes.ask(ctx, remade[i]) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return newConclusion(writes, pods).findings(), nil
}

// proxy is the cluster's proxy, which CVO configures in the workloads that request it.
func (r Rehearsal) proxy(ctx context.Context) (merge.Proxy, error) {
	found, err := r.Cluster.OpenShift.ConfigV1().Proxies().Get(ctx, "cluster", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return merge.Proxy{}, nil
	}
	if err != nil {
		return merge.Proxy{}, fmt.Errorf("could not read the proxy of the cluster: %w", err)
	}
	return merge.Proxy{HTTP: found.Status.HTTPProxy, HTTPS: found.Status.HTTPSProxy, No: found.Status.NoProxy}, nil
}

// each does something with each index, in order, a few at a time, and reports the progress.
func (r Rehearsal) each(ctx context.Context, total int, do func(context.Context, int)) {
	var done atomic.Int64
	r.again(ctx, total, func(int) bool { return true }, func(ctx context.Context, i int) {
		do(ctx, i)
		r.Progress(int(done.Add(1)), total)
	})
}

// again does something with the indices that are wanted, until the rehearsal ends.
func (Rehearsal) again(ctx context.Context, total int, wanted func(int) bool, do func(context.Context, int)) {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range total {
		if wanted(i) && ctx.Err() == nil {
			group.Go(func() error {
				do(ctx, i)
				return nil
			})
		}
	}
	_ = group.Wait() // no function has an error
}

// Needs are the permissions of a rehearsal; impersonating CVO is equivalent to the role cluster-admin. None is
// required: without them, the finding says that nothing was rehearsed.
func Needs() access.Needs {
	needs := guardNeeds().And(access.Needs{Optional: []access.Request{
		{Verb: "impersonate", Resource: "serviceaccounts", Namespace: operatorNamespace},
		{Verb: "impersonate", Resource: "serviceaccounts", Namespace: metav1.NamespaceSystem},
		check.Get("apps", "deployments", operatorNamespace, "cluster-version-operator"),
		check.Get("config.openshift.io", "proxies", "", "cluster"),
		check.List("", "pods"),
	}})
	return needs
}

// workloadPods is the resource of pods.
func workloadPods() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

// Asks makes the rehearsal of drains send the pods that controllers create in place of evicted ones to the API server;
// nil if nothing is rehearsed. logger receives each difference from the model. Each rehearsal has its own guard, which
// is deleted at its end.
func Asks(cluster *cluster.Cluster, mode Mode, logger *slog.Logger) *recreation.Asks {
	if mode == Off {
		return nil
	}
	return &recreation.Asks{
		Ask: func(ctx context.Context, controllers []finding.Object) (map[finding.Object]recreation.Said, error) {
			return Rehearsal{Cluster: cluster, Mode: mode, Run: uuid.NewString()}.pods(ctx, controllers)
		},
		Differs: func(difference string) {
			logger.Info("the model of admission differs from the API server", "difference", difference)
		},
	}
}

// pods asks about the next pod of each controller. What has no answer is not in the result.
func (r Rehearsal) pods(ctx context.Context, controllers []finding.Object) (map[finding.Object]recreation.Said, error) {
	if len(controllers) == 0 && !r.Cluster.Fixed() {
		return map[finding.Object]recreation.Said{}, nil
	}
	begun, err := r.begin(ctx)
	if err != nil {
		begun.end(ctx)
		return nil, fmt.Errorf("not rehearsed: %w", err)
	}
	var mutex sync.Mutex
	answers := map[finding.Object]recreation.Said{}
	r.again(ctx, len(controllers), func(int) bool { return true }, func(ctx context.Context, i int) {
		if said, ok := next(ctx, begun.client, controllers[i]); ok {
			mutex.Lock()
			defer mutex.Unlock()
			answers[controllers[i]] = said
		}
	})
	for _, each := range begun.end(ctx) {
		if each.Inconclusive() {
			return nil, fmt.Errorf("not rehearsed: %s", each.Message)
		}
	}
	return answers, ctx.Err()
}

// next asks about the next pod of one controller, whose template is read whole.
func next(ctx context.Context, client *dryrun.Client, of finding.Object) (recreation.Said, bool) {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
	controller, err := client.Get(ctx, resource, of.Namespace, of.Name)
	if err != nil {
		return recreation.Said{}, false
	}
	template, ok, err := podtemplate.Of(controller)
	if !ok || err != nil {
		return recreation.Said{}, false
	}
	by, err := client.As(template.User())
	if err != nil {
		return recreation.Said{}, false
	}
	sent, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template.Pod())
	if err != nil {
		return recreation.Said{}, false
	}
	admitted, err := by.Create(ctx, workloadPods(), &unstructured.Unstructured{Object: sent})
	if dryrun.AnswerOf(err).Temporary {
		admitted, err = by.Create(ctx, workloadPods(), &unstructured.Unstructured{Object: sent})
	}
	answer := dryrun.AnswerOf(err)
	if answer.Outcome == dryrun.Refused {
		return recreation.Said{By: answer.By, Why: answer.Message, Full: strings.Contains(answer.Message, "exceeded quota: ") &&
			answer.Kind == dryrun.KindQuota}, true
	}
	pod := &corev1.Pod{}
	if answer.Outcome != dryrun.Accepted || runtime.DefaultUnstructuredConverter.FromUnstructured(admitted.Object, pod) != nil {
		return recreation.Said{}, false
	}
	return recreation.Said{Admitted: pod}, true
}

// kinds are the kinds that an API server serves, and those that the target brings.
type kinds struct {
	served map[schema.GroupVersionKind]metav1.APIResource
	// failed are the groups whose resources are unknown, such as groups of an aggregated API without a server.
	failed map[string]error
	// brought are the kinds that the CustomResourceDefinitions of the target define.
	brought map[schema.GroupVersionKind]bool
}

func kindsOf(ctx context.Context, client discovery.DiscoveryInterface, manifests []payload.Definition) (kinds, error) {
	found := kinds{
		served: map[schema.GroupVersionKind]metav1.APIResource{}, failed: map[string]error{}, brought: map[schema.GroupVersionKind]bool{},
	}
	_, lists, err := discovery.ToServerResourcesInterfaceWithContext(client).ServerGroupsAndResourcesWithContext(ctx)
	if partial, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		for version, cause := range partial.Groups {
			found.failed[version.Group] = cause
		}
	} else if err != nil {
		return kinds{}, fmt.Errorf("could not list the kinds of the API server: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		for _, resource := range list.APIResources {
			if err == nil && !strings.Contains(resource.Name, "/") { // not a subresource
				found.served[version.WithKind(resource.Kind)] = resource
			}
		}
	}
	for _, each := range manifests {
		found.bring(each)
	}
	return found, nil
}

// bring adds the kinds of a CustomResourceDefinition, in the versions that the target serves.
func (k kinds) bring(manifest payload.Definition) {
	if manifest.Kind.GroupKind() != definition() || manifest.Deleted {
		return
	}
	decoded, err := manifest.Decode()
	if err != nil {
		return // it is reported as a manifest that cannot be decoded
	}
	for _, version := range decoded.Spec.Versions {
		if version.Served {
			k.brought[schema.GroupVersionKind{Group: decoded.Spec.Group, Version: version.Name, Kind: decoded.Spec.Names.Kind}] = true
		}
	}
}

func definition() schema.GroupKind {
	return schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// resourceOf is where objects of a kind are read and written, and whether they are in namespaces. With an error, the kind is not served,
// or not known to be.
func (k kinds) resourceOf(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	found, ok := k.served[kind]
	switch {
	case ok:
		return kind.GroupVersion().WithResource(found.Name), found.Namespaced, nil
	case k.failed[kind.Group] != nil:
		return resource, false, fmt.Errorf("could not read the API resources of %s: %w", kind.Group, k.failed[kind.Group])
	}
	return resource, false, fmt.Errorf("neither the API server nor a definition of the release has kind %s of %s", kind.Kind,
		kind.GroupVersion())
}
