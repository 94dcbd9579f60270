package intrusion

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	namePlatformQuota = finding.NewName("PlatformQuota",
		"A finding of the check PlatformPods about a ResourceQuota of a user that has nothing left: PlatformQuota-<namespace>-<name>.")
	namePlatformRestrictions = finding.NewName("PlatformRestrictions",
		"A finding of the check PlatformPods about what users restrict in a namespace of the platform: PlatformRestrictions-<namespace>.")

	reasonUsersQuotaExhausted = finding.NewReason("UsersQuotaExhausted", finding.Explanation{
		Meaning: "A ResourceQuota of a user in a namespace of the platform has nothing left for one more pod, so that the pods which " +
			"the update creates there are rejected.",
		Cause:  "The pods of the namespace use all that status.hard of the ResourceQuota allows.",
		Remedy: "Delete the ResourceQuota: `oc -n NAMESPACE get resourcequotas`.",
	})
	reasonUsersRestrictions = finding.NewReason("UsersRestrictPlatform", finding.Explanation{
		Meaning: "A person made a NetworkPolicy, ResourceQuota or LimitRange in a namespace of the platform. The pods of the next " +
			"release may need other connections, or more resources, than it allows.",
		Cause:  "The object has neither an owner nor the annotations of the release, and its only writer is a person's client or a GitOps tool.",
		Remedy: "Delete the object, or check that the pods of the platform can do without what it denies.",
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
	return finding.Warn(reasonUsersRestrictions, "namespace %s of the platform has restrictions that are not the release's: %s", name, words.Clauses(clauses, maxNamed)).
		Named(finding.NameOf(namePlatformRestrictions, namespace)).
		Remedy("Delete what the message names in namespace %s, or check that the pods of the next release can do without what it denies.", name).
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
	return finding.Warn(reasonUsersQuotaExhausted, "ResourceQuota %s/%s, made by %s, has nothing left for one more pod of the platform: it uses %s",
		words.Line(r.Namespace, maxText), words.Line(r.Name, maxText), r.by, words.List(none, maxNamed)).
		Named(finding.NameOf(namePlatformQuota, r.Namespace+"-"+r.Name)).
		Do(finding.Read("oc -n %s describe resourcequota %s", r.Namespace, r.Name), finding.Delete("oc -n %s delete resourcequota %s", r.Namespace, r.Name)).
		About(r.object)
}
