// Package intrusion answers: how do users' objects change the pods that the platform's controllers create?
//
// [PlatformPods] checks the SecurityContextConstraints, mutating webhooks, NetworkPolicies, ResourceQuotas and
// LimitRanges that users created and that concern pods in the namespaces of the cluster itself. An update
// recreates these pods, so an object that did not harm the current pods may keep the new ones from starting. Every
// finding is a warning: whether a pod tolerates the change is unknown.
package intrusion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxNamed bounds the names in one message, and maxText a text of the cluster in it, in bytes.
	maxNamed = 5
	maxText  = 256
)

// securityGroup returns the API group of SecurityContextConstraints. Importing its types would link their codecs.
func securityGroup() schema.GroupVersion {
	return schema.GroupVersion{Group: "security.openshift.io", Version: "v1"}
}

var namePlatformPods = finding.NewName("PlatformPods",
	"Checks for objects of users that change the pods of the platform, or may keep them from starting: SecurityContextConstraints that "+
		"admission prefers for them, mutating webhooks that have left traces on them, and NetworkPolicies, ResourceQuotas and "+
		"LimitRanges in their namespaces. It only warns, with a finding for each object.")

// PlatformPods is the check PlatformPods.
func PlatformPods() check.Check {
	return check.Check{
		Name: namePlatformPods, Kind: finding.SourceHealth,
		Reads: append(check.ReadsTopology(), []access.Request{
			check.List("", "pods"), check.List("", "namespaces"), check.List("", "resourcequotas"), check.List("", "limitranges"),
			check.List(appsv1.GroupName, "replicasets"), check.List(appsv1.GroupName, "daemonsets"), check.List(appsv1.GroupName, "statefulsets"),
			check.List(batchv1.GroupName, "jobs"), check.List(networkingv1.GroupName, "networkpolicies"),
			check.List(securityGroup().Group, "securitycontextconstraints"),
			check.List(admissionregistrationv1.GroupName, "mutatingwebhookconfigurations"),
		}...),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			topology, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			if topology == snapshot.Kubernetes {
				return []finding.Finding{check.PlainKubernetes("pods of the platform")}, nil
			}
			i := &inspection{cluster: s.Cluster}
			pods := i.pods(ctx)
			found := slices.Concat(i.constraints(ctx, pods), i.webhooks(ctx, pods), i.restrictions(ctx))
			if len(found) == 0 && len(i.unread) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected,
					"no object of a user is known to change one of %s of the platform", words.Count(len(pods), "pod"))}, ctx.Err()
			}
			return append(finding.Bounded(finding.Drafts(found...)), i.unreadable()...), ctx.Err()
		},
	}
}

// inspection reads what the parts of the check need; unread are the kinds that could not be read, with their errors.
type inspection struct {
	cluster *snapshot.Cluster
	unread  []string
	errs    []error
}

// lists reports whether a list was read. One that the API server does not serve is empty.
func (i *inspection) lists(kind string, err error) bool {
	if err == nil || apierrors.IsNotFound(err) {
		return true
	}
	i.unread, i.errs = append(i.unread, kind), append(i.errs, err)
	return false
}

// unreadable is one finding about all that could not be read.
func (i *inspection) unreadable() []finding.Finding {
	if len(i.unread) == 0 {
		return nil
	}
	err := i.errs[0]
	if others := errors.Join(i.errs[1:]...); others != nil {
		err = fmt.Errorf("%w; %w", err, others)
	}
	return check.Unread(strings.Join(i.unread, ", "), err)
}

// texts are names from outside, sorted and each once.
func texts(names map[string]bool) string {
	var all []string
	for name := range names {
		all = append(all, words.Line(name, maxText))
	}
	slices.Sort(all)
	return words.List(all, maxNamed)
}

// places are how many namespaces, and the first of them.
func places(namespaces map[string]bool) string {
	return words.Count(len(namespaces), "namespace") + ": " + texts(namespaces)
}

var (
	namePlatformQuota = finding.NewName("PlatformQuota",
		"An exhausted ResourceQuota of a user, found by the check PlatformPods: PlatformQuota-<namespace>-<name>.")
	namePlatformRestrictions = finding.NewName("PlatformRestrictions",
		"Restrictions of users in a namespace of the platform, found by the check PlatformPods: PlatformRestrictions-<namespace>.")

	reasonUsersQuotaExhausted = finding.NewReason("UsersQuotaExhausted", finding.Explanation{
		Meaning: "A ResourceQuota of a user in a namespace of the platform has no room for one more pod, so the API server rejects the " +
			"pods that the update creates there.",
		Cause:  "The pods of the namespace use everything that status.hard of the ResourceQuota allows.",
		Remedy: "Delete the ResourceQuota: `oc -n NAMESPACE get resourcequotas`.",
	})
	reasonUsersRestrictions = finding.NewReason("UsersRestrictPlatform", finding.Explanation{
		Meaning: "A user created a NetworkPolicy, ResourceQuota or LimitRange in a namespace of the platform. The pods of the next " +
			"release may need other connections, or more resources, than it allows.",
		Cause: "The object has neither an owner nor the annotations of the release, and only a person's client or a GitOps tool has " +
			"written it.",
		Remedy: "Delete the object, or check that the pods of the platform do not need what it denies.",
	})
)

// restriction is one that a user made; by is the client.
type restriction struct {
	*snapshot.Restriction

	object finding.Object
	by     string
}

// restrictions returns a finding for each ResourceQuota of a user that has nothing left, and one for each namespace of
// the platform with other restrictions of users.
func (i *inspection) restrictions(ctx context.Context) []finding.Finding {
	all := slices.Concat(
		i.made(ctx, networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), "NetworkPolicy"),
		i.made(ctx, corev1.SchemeGroupVersion.WithResource("resourcequotas"), "ResourceQuota"),
		i.made(ctx, corev1.SchemeGroupVersion.WithResource("limitranges"), "LimitRange"),
	)
	var found []finding.Finding
	others := map[string][]restriction{}
	for _, each := range all {
		if none := exhausted(each.Restriction); len(none) > 0 {
			found = append(found, each.quota(none))
			continue
		}
		others[each.Namespace] = append(others[each.Namespace], each)
	}
	for _, namespace := range slices.Sorted(maps.Keys(others)) {
		found = append(found, restricted(namespace, others[namespace]))
	}
	return found
}

// made are the objects of a kind that users made in namespaces of the platform.
func (i *inspection) made(ctx context.Context, resource schema.GroupVersionResource, kind string) []restriction {
	all, err := i.cluster.Restrictions(ctx, resource)
	if !i.lists(resource.Resource, err) {
		return nil
	}
	var found []restriction
	for at := range all {
		each := &all[at]
		if by := snapshot.HandMade(each); by != "" && !check.OfRelease(each) && len(each.OwnerReferences) == 0 {
			object := finding.Object{APIVersion: resource.GroupVersion().String(), Kind: kind, Namespace: each.Namespace, Name: each.Name}
			found = append(found, restriction{each, object, words.Line(by, maxText)})
		}
	}
	return found
}

func restricted(namespace string, all []restriction) finding.Finding {
	var clauses []string
	var objects []finding.Object
	for _, each := range all {
		clauses = append(clauses, fmt.Sprintf("%s %q by %s", each.object.Kind, words.Line(each.Name, maxText), each.by))
		objects = append(objects, each.object)
	}
	name := words.Line(namespace, maxText)
	return finding.Warn(reasonUsersRestrictions, "namespace %s of the platform has restrictions that are not the release's: %s", name,
		words.Clauses(clauses, maxNamed)).
		Named(finding.NameOf(namePlatformRestrictions, namespace)).
		Remedy("Delete the objects in the message from namespace %s, or check that the pods of the next release do not need what they "+
			"deny.", name).
		Do(finding.Read("oc -n %s get networkpolicies,resourcequotas,limitranges -o yaml", namespace)).
		About(objects...)
}

// exhausted are the resources of pods of which a quota has nothing left, with what it allows.
func exhausted(of *snapshot.Restriction) []string {
	var found []string
	for name, hard := range of.Status.Hard {
		used := of.Status.Used[name]
		ofPods := strings.TrimPrefix(strings.TrimPrefix(string(name), "requests."), "limits.")
		if slices.Contains([]string{"pods", "count/pods", "cpu", "memory", "ephemeral-storage"}, ofPods) && hard.Cmp(used) <= 0 {
			found = append(found, words.Line(fmt.Sprintf("%s of %s %s", used.String(), hard.String(), name), maxText))
		}
	}
	slices.Sort(found)
	return found
}

func (r restriction) quota(none []string) finding.Finding {
	return finding.Warn(reasonUsersQuotaExhausted,
		"ResourceQuota %s/%s, made by %s, has no room for one more pod of the platform: it uses %s",
		words.Line(r.Namespace, maxText), words.Line(r.Name, maxText), r.by, words.List(none, maxNamed)).
		Named(finding.NameOf(namePlatformQuota, r.Namespace+"-"+r.Name)).
		Do(finding.Read("oc -n %s describe resourcequota %s", r.Namespace, r.Name),
			finding.Change("oc -n %s edit resourcequota %s", r.Namespace, r.Name)).
		About(r.object)
}

// generationLabel has the generation of the template of a DaemonSet, which the DaemonSet has in an annotation (Kubernetes
// pkg/controller/daemon/util, CreatePodTemplate).
const generationLabel = "pod-template-generation"

// created is a pod of the platform, and the template by which its controller creates the next one; nil where it is not
// known, or has changed since.
type created struct {
	*corev1.Pod

	template *corev1.PodTemplateSpec
}

// spec is the pod as its controller requests it, before admission changes it.
func (c created) spec() *corev1.PodSpec {
	if c.template == nil {
		return &c.Spec
	}
	return &c.template.Spec
}

// controller identifies the controller of pods.
type controller struct {
	kind string
	types.NamespacedName
}

// source is the template of a controller. A pod of the controller whose label has another value comes from an
// earlier template.
type source struct {
	template     *corev1.PodTemplateSpec
	label, value string
}

// pods are the pods of the platform that have not ended, without mirrors of static pods, which no admission changes.
func (i *inspection) pods(ctx context.Context) []created {
	all, err := i.cluster.Pods(ctx)
	if !i.lists("pods", err) {
		return nil
	}
	sources := i.sources(ctx)
	var found []created
	for at := range all {
		pod := &all[at]
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if mirror || ended || !check.OfCluster(pod.Namespace) {
			continue
		}
		of := created{Pod: pod}
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			from := sources[controller{owner.Kind, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}}]
			if from.value == "" || pod.Labels[from.label] == from.value {
				of.template = from.template
			}
		}
		found = append(found, of)
	}
	return found
}

// sources are the templates of the controllers of the platform.
func (i *inspection) sources(ctx context.Context) map[controller]source {
	found := map[controller]source{}
	add := func(kind string, object metav1.ObjectMeta, from source) {
		if check.OfCluster(object.Namespace) && len(from.template.Spec.Containers) > 0 { // earlier ReplicaSets have none
			found[controller{kind, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}}] = from
		}
	}
	if sets, err := i.cluster.ReplicaSets(ctx); i.lists("ReplicaSets", err) {
		for at := range sets {
			add("ReplicaSet", sets[at].ObjectMeta, source{template: &sets[at].Spec.Template})
		}
	}
	if sets, err := i.cluster.DaemonSets(ctx); i.lists("DaemonSets", err) {
		for at := range sets {
			add("DaemonSet", sets[at].ObjectMeta, source{
				&sets[at].Spec.Template, generationLabel,
				sets[at].Annotations[appsv1.DeprecatedTemplateGeneration],
			})
		}
	}
	if sets, err := i.cluster.StatefulSets(ctx); i.lists("StatefulSets", err) {
		for at := range sets {
			add("StatefulSet", sets[at].ObjectMeta, source{&sets[at].Spec.Template, appsv1.StatefulSetRevisionLabel, sets[at].Status.UpdateRevision})
		}
	}
	if jobs, err := i.cluster.Jobs(ctx); i.lists("Jobs", err) {
		for at := range jobs {
			add("Job", jobs[at].ObjectMeta, source{template: &jobs[at].Spec.Template})
		}
	}
	return found
}
