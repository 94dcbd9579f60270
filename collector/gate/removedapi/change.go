package removedapi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/apiuse"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// bucket is the grain of the counts.
const bucket = time.Hour

// minute is how messages write times.
const minute = "2006-01-02 15:04 MST"

// change is the last change of all workloads of a client.
type change struct {
	// at is when it took effect.
	at   time.Time
	text string
	// period is the longest period of the schedules of its CronJobs.
	period time.Duration
	// scheduled is true where all its workloads are CronJobs.
	scheduled bool
}

// interactive are programs that are run by hand; a change of a workload does not explain their silence.
func interactive() []string {
	return []string{"kubectl", "oc", "helm", "Helm", "curl", "Mozilla", "k9s"}
}

// changeOf is the last change of the workloads of a client, where all of them changed
// after its last use, in an hour that ended at end. doubt is why that is unknown.
func (o owners) changeOf(client apiuse.Client, end time.Time) (last change, doubt string) {
	owner, ok := o[client.User]
	switch {
	case !ok:
		return change{}, "no workload of it is known"
	case owner.unread:
		return change{}, "its workloads could not be read"
	case len(owner.templates) == 0:
		return change{}, "no workload with a rollout uses the service account"
	}
	if doubt := owner.unmanaged(); doubt != "" {
		return change{}, doubt
	}
	last.scheduled = true
	for _, template := range owner.templates {
		each, doubt := owner.changed(template, end)
		if doubt != "" {
			return change{}, doubt
		}
		last.period, last.scheduled = max(last.period, each.period), last.scheduled && each.scheduled
		if last.text == "" || each.at.After(last.at) {
			last.at, last.text = each.at, each.text
		}
	}
	program, _, _ := strings.Cut(client.Agent, "/")
	if !last.scheduled && slices.Contains(interactive(), program) {
		return change{}, "its program is one that is run by hand"
	}
	return last, ""
}

// unmanaged is empty where every workload with pods has a template.
func (o owner) unmanaged() string {
	for _, workload := range o.workloads {
		if !slices.ContainsFunc(o.templates, func(t snapshot.PodOwner) bool { return t.Kind == workload.Kind && t.Name == workload.Name }) {
			return fmt.Sprintf("when %s is run again is unknown", o.name(workload.Kind, workload.Name))
		}
	}
	return ""
}

// changed is the change of one workload after the last use, in an hour that ended at end.
func (o owner) changed(template snapshot.PodOwner, end time.Time) (change, string) {
	name := o.name(template.Kind, template.Name)
	start := end.Add(-bucket)
	if template.Kind == "CronJob" {
		return scheduledChange(name, template, end)
	}
	oldest, newest := o.pods(template)
	switch {
	case oldest.IsZero():
		return change{}, name + " has no pod now"
	case template.Kind == "Deployment" && (template.Changed.Before(start) || oldest.Before(start)):
		return change{}, name + " has not completed a rollout since " + start.Format(minute)
	case template.Kind == "Deployment":
		return change{at: latest(template.Changed, newest), text: name + " completed its rollout at " + template.Changed.UTC().Format(minute)}, ""
	case oldest.Before(end):
		return change{}, name + " has pods from before " + end.Format(minute)
	}
	return change{at: newest, text: name + " started its pods from " + oldest.UTC().Format(minute)}, ""
}

// scheduledChange is the change of a CronJob, which has succeeded since.
func scheduledChange(name string, job snapshot.PodOwner, end time.Time) (change, string) {
	period, known := cronPeriod(job.Schedule)
	at := latest(job.Changed, end)
	switch {
	case job.Changed.Before(end.Add(-bucket)):
		return change{}, name + " has not been changed since " + end.Add(-bucket).Format(minute)
	case job.Suspended:
		return change{}, name + " is suspended"
	case !known:
		return change{}, fmt.Sprintf("the period of %s is unknown (schedule %q)", name, words.Line(job.Schedule, maxClientName))
	case !job.Succeeded.After(at):
		return change{}, name + " has not succeeded since " + at.UTC().Format(minute)
	}
	return change{at: at, text: name + " was changed at " + job.Changed.UTC().Format(minute), period: period, scheduled: true}, ""
}

// pods are the creation times of the pods of a workload, zero without any.
func (o owner) pods(template snapshot.PodOwner) (oldest, newest time.Time) {
	for _, workload := range o.workloads {
		if workload.Kind != template.Kind || workload.Name != template.Name {
			continue
		}
		if oldest.IsZero() || workload.Oldest.Before(oldest) {
			oldest = workload.Oldest
		}
		newest = latest(newest, workload.Newest)
	}
	return oldest, newest
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b.UTC()
	}
	return a.UTC()
}
