package rehearsal

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
)

// Name is the name of the finding with the counts of a rehearsal.
var Name = finding.NewName("Rehearsal", "The findings about the writes of the update that were sent to the API "+
	"server as dry runs. Those about one object are named Rehearsal.KIND.NAMESPACE.NAME, and "+
	"Rehearsal.Pod.NAMESPACE.NAME for the pods of a workload.")

var (
	nameGuard = finding.NewName("RehearsalGuard",
		"The findings about the policy by which the API server rejects all writes of a rehearsal that are not dry runs.")
	nameNotYet = finding.NewName("RehearsalNotAsked", "The objects of a release that the API server cannot rehearse "+
		"before the update.")
)

const (
	mostObjects = 50
	mostNamed   = 5
)

var (
	reasonAccepted = finding.NewReason("WritesAccepted", finding.Explanation{
		Meaning: "The API server accepts every write of the update that could be rehearsed.",
		Cause:   "Validation, webhooks, policies and quotas accept the writes as dry runs.",
	})
	reasonCounted = finding.NewReason("WritesCounted", finding.Explanation{
		Meaning: "Some rehearsed writes were rejected or could not be answered. The finding contains their counts.",
		Cause:   "Other findings of the rehearsal contain the writes.",
		Remedy:  "Follow the findings whose names begin with Rehearsal.",
	})
	reasonRefused = finding.NewReason("WriteRefused", finding.Explanation{
		Meaning: "The API server rejects a write of the update. The update would be stuck there.",
		Cause: "The message quotes the component that rejects the write: a webhook, a policy, a quota, Pod Security, " +
			"or the validation of the API server.",
		Remedy: "Fix the cause of the rejection, then run the preflight again.",
	})
	reasonAltered = finding.NewReason("PodAltered", finding.Explanation{
		Meaning: "Admission would change a pod of the platform in a way in which it did not change the running pods.",
		Cause: "A mutating webhook or policy, or a different SecurityContextConstraints, is newer than the running " +
			"pods, or selects the next pods.",
		Remedy: "Exempt the namespaces of the platform from the webhook or policy.",
	})
	reasonNoAnswer = finding.NewReason("WriteNotAsked", finding.Explanation{
		Meaning: "A write of the update could not be rehearsed, or the update itself changes the answer.",
		Cause: "A webhook does not support dry runs or could not be reached, a permission is missing, or the update " +
			"replaces the object that rejects the write.",
		Remedy: "Fix the problem in the message, or accept the finding by its name.",
	})
	reasonNotYet = finding.NewReason("BroughtByTarget", finding.Explanation{
		Meaning: "The update brings objects of new kinds, or in new namespaces. The API server cannot rehearse these " +
			"writes before the update.",
		Cause: "The target has new CustomResourceDefinitions or Namespaces.",
	})
	reasonNotRehearsed = finding.NewReason("NotRehearsed", finding.Explanation{
		Meaning: "No write was rehearsed.",
		Cause:   "The cluster is an archive, the guard of the rehearsal could not be created, or a permission is missing.",
		Remedy: "Rehearse on the cluster, as a user with the permissions that \"auth run --rehearse\" prints. Before " +
			"Kubernetes 1.30, which has no ValidatingAdmissionPolicies, pass --rehearse=unguarded.",
	})
	reasonUnguarded = finding.NewReason("RehearsalUnguarded", finding.Explanation{
		Meaning: "The rehearsal runs without the policy by which the API server rejects all writes that are not dry runs.",
		Cause:   "The run used --rehearse=unguarded.",
		Remedy:  "Rehearse with --rehearse, if Kubernetes is 1.30 or later.",
	})
	reasonGuardLost = finding.NewReason("RehearsalGuardChanged", finding.Explanation{
		Meaning: "The policy of a rehearsal was deleted or changed before the rehearsal finished.",
		Cause:   "A user or a controller changed it.",
		Remedy:  "Find the user who changed it in the audit log of the API server, then run the preflight again.",
	})
	reasonGuardLeft = finding.NewReason("RehearsalGuardLeft", finding.Explanation{
		Meaning: "The policy of a rehearsal could not be deleted.",
		Cause:   "The API server could not be reached, or the user may not delete it.",
		Remedy:  "Delete it with \"cleanup\".",
	})
)

// notRehearsed stands for a rehearsal that could not begin.
func notRehearsed(cause error) finding.Finding {
	return finding.Unknown(reasonNotRehearsed, "not rehearsed: %v", cause).Do(finding.Roles())
}

// WithoutRelease is the finding in place of the rehearsal of a release that was not read.
func WithoutRelease() finding.Finding {
	return finding.Unknown(reasonNotRehearsed, "not rehearsed: the manifests of the release were not read").
		Remedy("Follow the findings about the release, then run the preflight again.").Do(finding.Retry("")).Named(Name)
}

// conclusion combines the answers of a rehearsal.
type conclusion struct {
	writes []write
	pods   []pod
	// touched are the writes that change something, by the kind, namespace and name of their object.
	touched map[string]write
}

func newConclusion(writes []write, pods []pod) conclusion {
	c := conclusion{writes: writes, pods: pods, touched: map[string]write{}}
	for _, each := range writes {
		if each.state != unchanged && each.state != leftOut {
			c.touched[keyOf(each.manifest.Kind.Kind, each.manifest.Namespace, each.manifest.Name)] = each
		}
	}
	for i := range c.writes {
		c.settle(&c.writes[i])
	}
	for i := range c.pods {
		c.settlePod(&c.pods[i])
	}
	return c
}

// settle has an answer count as far as the update does not change it.
func (c conclusion) settle(w *write) {
	switch {
	case w.state == notAsked && w.answer.Kind == dryrun.KindAPIServer && c.bringsNamespace(w.manifest.Namespace):
		w.state = newNamespace
	case w.state == refused:
		w.answer, w.state = c.weighed(w.answer, w.manifest.Namespace, w.manifest.Kind)
	}
}

func (c conclusion) settlePod(p *pod) {
	if p.state != refused {
		return
	}
	p.answer, p.state = c.weighed(p.answer, p.workload.Namespace, schema.GroupVersionKind{})
	if lacking := p.lacking(c.creates); p.state == refused && lacking != "" {
		p.state, p.answer.Message = notAsked, "the pod needs "+lacking+", which the update brings"
	}
}

func keyOf(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

func (c conclusion) creates(kind, namespace, name string) bool {
	found, ok := c.touched[keyOf(kind, namespace, name)]
	return ok && found.verb == "create"
}

// bringsNamespace reports whether the update creates a namespace, and the API server accepts that.
func (c conclusion) bringsNamespace(name string) bool {
	return c.creates("Namespace", "", name) && c.touched[keyOf("Namespace", "", name)].state == accepted
}

// weighed returns a rejection as it counts: if the update changes the object that rejects the write, the answer may
// differ during the update.
func (c conclusion) weighed(answer dryrun.Answer, namespace string, kind schema.GroupVersionKind) (dryrun.Answer, state) {
	by := c.changedBy(answer, namespace, kind)
	if by == "" {
		return answer, refused
	}
	answer.Message = fmt.Sprintf("rejected today, and the update changes %s: %s", by, answer.Message)
	return answer, notAsked
}

// changedBy names the changes of the update to the object that rejects the write; empty for none.
func (c conclusion) changedBy(answer dryrun.Answer, namespace string, kind schema.GroupVersionKind) string {
	for _, each := range c.writes {
		if each.state != unchanged && each.state != leftOut && each.decides(answer, namespace, kind) {
			return each.manifest.Kind.Kind + " " + each.manifest.Name
		}
	}
	return ""
}

// decides reports whether the object of a write is the one that rejects another write.
func (w write) decides(answer dryrun.Answer, namespace string, kind schema.GroupVersionKind) bool {
	of, named := w.manifest, quoted(answer.By)
	switch answer.Kind {
	case dryrun.KindWebhook:
		return strings.HasSuffix(of.Kind.Kind, "WebhookConfiguration") && slices.ContainsFunc(named, w.mentions)
	case dryrun.KindValidatingPolicy, dryrun.KindMutatingPolicy:
		return strings.HasPrefix(of.Kind.Kind, answer.Kind) && slices.Contains(named, of.Name)
	case dryrun.KindQuota:
		return of.Kind.Kind == "ResourceQuota" && of.Namespace == namespace && slices.Contains(named, of.Name)
	case dryrun.KindLimitRange:
		return of.Kind.Kind == answer.Kind && of.Namespace == namespace
	case dryrun.KindPodSecurity:
		return of.Kind.Kind == "Namespace" && of.Name == namespace
	case dryrun.KindSCC:
		return of.Kind.Kind == answer.Kind
	case dryrun.KindAPIServer:
		return of.Kind.GroupKind() == definition() && w.defines(kind)
	}
	return false
}

// quoted are the names in quotation marks.
func quoted(text string) []string {
	var names []string
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	return names
}

// mentions reports whether the manifest has the name of a webhook.
func (w write) mentions(webhook string) bool {
	return bytes.Contains(w.manifest.Manifest, []byte(webhook))
}

// defines reports whether the manifest of a CustomResourceDefinition defines a kind.
func (w write) defines(kind schema.GroupVersionKind) bool {
	decoded, err := w.manifest.Decode()
	return err == nil && decoded.Spec.Group == kind.Group && decoded.Spec.Names.Kind == kind.Kind
}

// findings are the refused writes, those without an answer, the changed pods, and the counts.
func (c conclusion) findings() []finding.Finding {
	groups := map[string][]refusal{}
	var order []string
	for _, each := range c.refusals() {
		key := each.key()
		if _, ok := groups[key]; !ok {
			order = append(order, key)
		}
		groups[key] = append(groups[key], each)
	}
	var found []finding.Finding
	for _, key := range order {
		found = append(found, describe(groups[key]))
	}
	for _, each := range c.pods {
		if each.state == accepted && (len(each.changes) > 0 || each.constraint != "") {
			found = append(found, altered(each))
		}
	}
	found = finding.Bounded(finding.Drafts(found...))
	return append(append(found, c.notYet()...), c.summary())
}

// refusal is one write, or one pod, that is refused or without an answer.
type refusal struct {
	name, what string
	object     finding.Object
	state      state
	answer     dryrun.Answer
}

func (c conclusion) refusals() []refusal {
	var found []refusal
	for _, each := range c.writes {
		if each.state == refused || each.state == notAsked {
			of := each.object()
			found = append(found, refusal{nameOf(of.Kind, of), each.describe(), of, each.state, each.answer})
		}
	}
	for _, each := range c.pods {
		if each.state == refused || each.state == notAsked {
			found = append(found, refusal{
				nameOf("Pod", each.workload), "create the next pod of " + check.Describe(each.workload), each.workload,
				each.state, each.answer,
			})
		}
	}
	return found
}

// key groups what one reviewer refuses: it is one cause with one remedy. What the validation of the API server refuses has a cause of
// its own for each object.
func (r refusal) key() string {
	switch r.answer.Kind {
	case dryrun.KindWebhook, dryrun.KindValidatingPolicy, dryrun.KindMutatingPolicy, dryrun.KindConnection:
		return string(r.state) + "/" + r.answer.By
	case dryrun.KindQuota, dryrun.KindLimitRange, dryrun.KindPodSecurity:
		return string(r.state) + "/" + r.answer.By + "/" + r.object.Namespace
	}
	return r.name
}

func nameOf(kind string, of finding.Object) string {
	parts := slices.DeleteFunc([]string{kind, of.Namespace, of.Name}, func(part string) bool { return part == "" })
	return strings.Replace(finding.NameOf(Name, strings.Join(parts, ".")), "-", ".", 1)
}

// describe makes one finding of what one reviewer answers.
func describe(all []refusal) finding.Finding {
	first := all[0]
	by := cmp.Or(first.answer.By, "the API server")
	text := fmt.Sprintf("the update must %s, but %s rejects it: %s", first.what, by, first.answer.Message)
	if first.state == notAsked {
		text = fmt.Sprintf("it is unknown whether the update can %s: %s", first.what, first.answer.Message)
		if first.answer.By != "" {
			text = fmt.Sprintf("it is unknown whether the update can %s, because of %s: %s", first.what, first.answer.By, first.answer.Message)
		}
	}
	var objects []finding.Object
	var others []string
	for i, each := range all {
		if i < mostObjects {
			objects = append(objects, each.object)
		}
		if i > 0 {
			others = append(others, each.what)
		}
	}
	if len(others) > 0 {
		text += "; the same for: " + words.Clauses(others, mostNamed)
	}
	if first.state == notAsked {
		return remedied(finding.Unknown(reasonNoAnswer, "%s", text), first).Named(first.name).About(objects...)
	}
	return remedied(finding.Fail(reasonRefused, "%s", text), first).Named(first.name).About(objects...)
}

// remedied adds what to do about a reviewer.
func remedied(f finding.Finding, of refusal) finding.Finding {
	namespace := of.object.Namespace
	switch of.answer.Kind {
	case dryrun.KindWebhook:
		return f.Remedy("Exempt the namespaces of the platform from the webhook, or ask its owner to allow the write.").
			Do(finding.Read("oc get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml"), finding.Retry(""))
	case dryrun.KindValidatingPolicy, dryrun.KindMutatingPolicy:
		return f.Remedy("Exempt the namespaces of the platform from the policy, or ask its owner to allow the write.").
			Do(finding.Read("oc get validatingadmissionpolicies,validatingadmissionpolicybindings -o yaml"), finding.Retry(""))
	case dryrun.KindQuota:
		return f.Remedy("Raise or delete the quota: namespaces of the platform have none by default.").Do(finding.Read("oc describe quota -n %s",
			namespace))
	case dryrun.KindLimitRange:
		return f.Remedy("Change or delete the LimitRange: namespaces of the platform have none by default.").Do(
			finding.Read("oc describe limits -n %s", namespace))
	case dryrun.KindPodSecurity:
		return f.Remedy("Remove from the namespace the label pod-security.kubernetes.io/enforce, which the release " +
			"does not set.").
			Do(finding.Read("oc get namespace %s -o yaml", namespace))
	case dryrun.KindSCC:
		return f.Remedy("Compare the SecurityContextConstraints with the release, and restore the changed ones.").
			Do(finding.Read("oc get securitycontextconstraints"))
	case dryrun.KindRBAC:
		return f.Remedy("Bind the roles that `oc preflight auth run --rehearse` prints, or restore the permissions of the account that " +
			"the message names.").
			Do(finding.Roles())
	}
	f = f.Remedy("Compare the object with the manifest of the release. To change an immutable field, delete the " +
		"object, which the update creates again: ask the support of the platform first.")
	if of.object.Namespace != "" {
		return f.Do(finding.Read("oc get %s %s -n %s -o yaml", resourceOf(of.object), of.object.Name, namespace))
	}
	return f.Do(finding.Read("oc get %s %s -o yaml", resourceOf(of.object), of.object.Name))
}

// resourceOf is the kind of an object as in a command line.
func resourceOf(of finding.Object) string {
	group, _, grouped := strings.Cut(of.APIVersion, "/")
	if !grouped {
		return of.Kind
	}
	return of.Kind + "." + group
}

// altered is the warning about a pod that admission changes.
func altered(p pod) finding.Finding {
	var changes []string
	for _, each := range p.changes {
		changes = append(changes, each.String())
	}
	if p.constraint != "" {
		changes = append(changes, p.constraint)
	}
	return finding.Warn(reasonAltered, "admission would change the next pod of %s in a way in which it did not "+
		"change the running pods: %s",
		check.Describe(p.workload), words.Clauses(changes, mostNamed)).
		Named(nameOf("Pod", p.workload)).About(p.workload).
		Remedy("Find the webhook, policy or SecurityContextConstraints that makes the change, " +
			"and exempt the namespaces of the platform from it.").
		Do(finding.Read("oc get mutatingwebhookconfigurations -o yaml"))
}

// notYet names what the target brings, of which nothing could be asked.
func (c conclusion) notYet() []finding.Finding {
	var names []string
	var objects []finding.Object
	for _, each := range c.writes {
		if each.state != newKind && each.state != newNamespace {
			continue
		}
		names = append(names, check.Describe(each.object()))
		if len(objects) < mostObjects {
			objects = append(objects, each.object())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []finding.Finding{finding.Skipped(gap.Proven("the manifests of the release"), reasonNotYet,
		"the API server cannot rehearse %s of kinds or in namespaces that the update brings: %s",
		words.Count(len(names), "object"), words.Clauses(names, mostNamed)).Named(nameNotYet).About(objects...)}
}

// summary has the counts.
func (c conclusion) summary() finding.Finding {
	counts := map[state]int{}
	for _, each := range c.writes {
		counts[each.state]++
	}
	ofPods := map[state]int{}
	for _, each := range c.pods {
		ofPods[each.state]++
	}
	text := fmt.Sprintf("%d of %s accepted, %d of them without a change; %d %s, %d %s, %d rejected, %d without an answer",
		counts[accepted]+counts[unchanged], words.Count(len(c.writes)-counts[leftOut], "manifest"), counts[unchanged],
		counts[newKind], newKind, counts[newNamespace], newNamespace, counts[refused], counts[notAsked])
	if len(c.pods) > 0 {
		text += fmt.Sprintf("; next pods: %d of %s accepted", ofPods[accepted], words.Count(len(c.pods), "workload"))
	}
	facts := map[string]string{}
	for _, known := range []state{accepted, unchanged, newKind, newNamespace, refused, notAsked} {
		facts[string(known)] = fmt.Sprint(counts[known])
	}
	if counts[refused]+counts[notAsked]+ofPods[refused]+ofPods[notAsked] > 0 {
		return finding.Warn(reasonCounted, "%s", text).Named(Name).Observed(facts)
	}
	return finding.Pass(gap.Proven("the answers of the API server"), reasonAccepted, "%s", text).Named(Name).Observed(facts)
}
