package draining

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// warnings are what an update interrupts or loses without a drain that does not end, each in one
// finding.
func warnings(rehearsal drain.Rehearsal) []finding.Finding {
	var found []finding.Finding
	add := func(name string, reason finding.Reason, what string, texts []string, objects []finding.Object) {
		if len(texts) > 0 {
			found = append(found, finding.Warn(reason, "%s %s", what, words.List(texts, maxNamed)).Named(name).About(objects...))
		}
	}
	pods := func(references []drain.Reference) []finding.Object {
		var objects []finding.Object
		for _, each := range references {
			objects = append(objects, finding.Object{APIVersion: "v1", Kind: "Pod", Namespace: each.Namespace, Name: each.Name})
		}
		return objects
	}
	var texts []string
	var named []drain.Reference
	for _, each := range rehearsal.Pending {
		texts, named = append(texts, fmt.Sprintf("%s (%s)", each.Pod, each.Why)), append(named, each.Pod)
	}
	add("DrainPending", reasonNoNode, "pods have no node after the drains of this update, or the API server refuses them:", texts, pods(named))
	texts, named = nil, nil
	for _, each := range rehearsal.Lost {
		texts, named = append(texts, fmt.Sprintf("%s on %s, which %s", each.Pod, each.Node, each.Why)), append(named, each.Pod)
	}
	add("DrainLost", reasonLost, "the drains of this update evict pods that nothing creates again:", texts, pods(named))
	texts, named = nil, nil
	for _, each := range rehearsal.Graces {
		texts, named = append(texts, fmt.Sprintf("%s on %s: %s", each.Pod, each.Node, each.Period())), append(named, each.Pod)
	}
	add("DrainGracePeriods", reasonGrace, "the drains of this update wait for pods that may take long to end:", texts, pods(named))
	texts = nil
	var services []finding.Object
	for _, each := range rehearsal.Interrupted {
		texts = append(texts, each.Service.String())
		services = append(services, finding.Object{APIVersion: "v1", Kind: "Service", Namespace: each.Service.Namespace, Name: each.Service.Name})
	}
	add("DrainInterrupts", reasonInterrupted, "the drains of this update leave Services without a ready pod for a time:", texts, services)
	return found
}
