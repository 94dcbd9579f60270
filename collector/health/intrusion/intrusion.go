// Package intrusion answers: what do users' objects change of the pods that the platform's controllers make?
//
// [PlatformPods] looks at the SecurityContextConstraints, mutating webhooks, NetworkPolicies, ResourceQuotas and LimitRanges
// that users made, and that concern pods in the namespaces of the cluster itself. An update creates these pods again, so
// that what did no harm to the present ones decides whether the new ones start. Every finding is a warning: whether a pod
// tolerates the change is not known.
package intrusion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// securityGroup is the API group of SecurityContextConstraints. Importing its types would link their codecs.
var securityGroup = schema.GroupVersion{Group: "security.openshift.io", Version: "v1"} //nolint:gochecknoglobals // it is a constant

var namePlatformPods = finding.NewName("PlatformPods",
	"The check for objects of users that change the pods of the platform, or may keep them from starting: "+
		"SecurityContextConstraints that admission prefers for them, mutating webhooks that have left traces on them, and "+
		"NetworkPolicies, ResourceQuotas and LimitRanges in their namespaces. It only warns, with a finding for each object.")

// PlatformPods is the check PlatformPods.
func PlatformPods() check.Check {
	return check.Check{
		Name: namePlatformPods, Kind: finding.SourceHealth,
		Reads: append(check.ReadsTopology(), []access.Request{
			check.List("", "pods"), check.List("", "namespaces"), check.List("", "resourcequotas"), check.List("", "limitranges"),
			check.List(appsv1.GroupName, "replicasets"), check.List(appsv1.GroupName, "daemonsets"), check.List(appsv1.GroupName, "statefulsets"),
			check.List(batchv1.GroupName, "jobs"), check.List(networkingv1.GroupName, "networkpolicies"),
			check.List(securityGroup.Group, "securitycontextconstraints"),
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
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected, "no object of a user is known to change one of %s of the platform", words.Count(len(pods), "pod"))}, ctx.Err()
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
