package afterupdate

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/words"
)

// listed are the entries of causes, at most MaxListed, and how many there are.
func (j judge) listed(causes []cause) ([]Regression, int) {
	entries := make([]Regression, 0, min(len(causes), MaxListed))
	for _, each := range causes[:min(len(causes), MaxListed)] {
		root := each.found[0]
		since := j.timing.course.Problems[Problem{root.Key, root.Problem.Reason}].Since
		counts := ""
		if each.group == pending && !j.timing.held(root) && j.timing.counts(root).After(j.timing.now) {
			counts = timeOf(j.timing.counts(root))
		}
		root.Key = j.timing.course.named(root.Key)
		entry := Regression{
			Name: nameOf(root), Object: j.apis().objectOf(root.Key), Was: root.Was, Is: isOf(root), Since: timeOf(since), CountsTime: counts,
			Step: stepOf(j.timing.course.last.progress.Steps, root, since), Command: j.apis().inspect(root.Key).Command, Action: j.apis().inspect(root.Key),
		}
		for _, follows := range each.found[1:min(len(each.found), maxFolded+1)] {
			follows.Key = j.timing.course.named(follows.Key)
			entry.Follows = append(entry.Follows, Folded{Name: nameOf(follows), Object: j.apis().objectOf(follows.Key), Is: isOf(follows)})
		}
		entry.Unlisted = len(each.found) - 1 - len(entry.Follows)
		entries = append(entries, entry)
	}
	return entries, len(causes)
}

// maxFolded bounds the problems of a cause that are listed.
const maxFolded = 20

// named is the key with the name of its object, also where the state has a hash of it.
func (c Course) named(key baseline.Key) baseline.Key {
	if name, redacted := c.last.names[key]; redacted {
		return name
	}
	return key
}

// maxText bounds a clause of an entry, in bytes.
const maxText = 500

func isOf(found regression.Found) string {
	return words.Line(strings.TrimSuffix(found.Problem.Reason+": "+found.Problem.Message, ": "), maxText)
}

// notInName are the characters that no name of a finding has.
var notInName = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// nameOf is the name of a finding. It has the name of an object only if the release decides about that.
func nameOf(found regression.Found) string {
	key := found.Key
	name := key.Kind.Name() + found.Problem.Reason
	alert, _, _ := strings.Cut(key.Name, "/")
	switch {
	case key.Kind == baseline.Alert && (key.Namespace == "" || key.Platform()):
		name = "AlertFiring-" + alert
	case key.Kind == baseline.ClusterOperator, key.Namespace != "" && key.Platform() && (baseline.RowOf(key.Kind).Pods || key.Kind == baseline.Service):
		name += "-" + key.Name
	}
	return notInName.ReplaceAllString(name, "-")
}

// apis are those of kinds: now, and in the baseline, which is nil for none.
type apis struct {
	seen   map[baseline.Kind]baseline.API
	before *baseline.State
}

func (j judge) apis() apis { return apis{j.timing.course.last.apis, j.timing.question.Before} }

func (a apis) objectOf(key baseline.Key) finding.Object {
	version, _ := a.apiOf(key.Kind)
	return finding.Object{APIVersion: version, Kind: key.Kind.Name(), Namespace: key.Namespace, Name: key.Name}
}

// apiOf is the API of a kind: now, or in the baseline.
func (a apis) apiOf(kind baseline.Kind) (version, resource string) {
	if version, resource := (baseline.State{APIs: a.seen}).APIOf(kind); version != "" || a.before == nil {
		return version, resource
	}
	return a.before.APIOf(kind)
}

// inspect shows the object, or for a key that names no object, all of its kind.
func (a apis) inspect(key baseline.Key) finding.Action {
	_, plural := a.apiOf(key.Kind)
	var made finding.Action
	switch key.Kind { //nolint:exhaustive // the others are shown by their name
	case baseline.Alert:
		alert, _, _ := strings.Cut(key.Name, "/")
		return finding.Read("oc get prometheusrules -A -o yaml | grep -A 20 -F %s", "alert: "+alert)
	case baseline.VolumeAttachment, baseline.ClusterServiceVersion:
		made = finding.Read("oc get %s", plural)
	case baseline.CertificateSigningRequest:
		made = finding.Read("oc get certificatesigningrequest %s -o yaml", key.Name)
	default:
		made = finding.Read("oc describe %s %s", plural, key.Name)
	}
	if key.Kind == baseline.HostedCluster || key.Kind == baseline.NodePool {
		made = made.In(finding.Management)
	}
	return made.Namespaced(key.Namespace)
}

// The time within which a problem follows a step that may have caused it.
const (
	afterReboot = time.Hour
	afterStep   = 30 * time.Minute
)

// stepOf is the last step before a problem began; for a problem on a node that was rebooted, that.
func stepOf(steps []settling.Step, found regression.Found, since time.Time) string {
	node := found.Problem.Node
	if found.Key.Kind == baseline.Node {
		node = found.Key.Name
	}
	nearest := ""
	for _, step := range steps {
		took := since.Sub(step.Time)
		if node != "" && step.Node == node && took.Abs() <= afterReboot {
			return step.Text
		}
		if took >= 0 && took <= afterStep {
			nearest = fmt.Sprintf("%s, %s before", step.Text, took.Round(time.Second))
		}
	}
	return nearest
}
