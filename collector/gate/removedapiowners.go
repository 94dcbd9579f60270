package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// maxOwned bounds the service accounts whose workloads are read.
	maxOwned = 50
	// maxWorkloads bounds the workloads of one service account that a message names.
	maxWorkloads = 3
	// ownersTimeout bounds the reading of workloads. Clients whose workloads are not read
	// are not named with them, and are not known to be fixed.
	ownersTimeout = 10 * time.Second
)

// owners are the workloads of service accounts, by user name.
type owners map[string]owner

// owner are the workloads of one service account.
type owner struct {
	namespace string
	// workloads have pods now.
	workloads []snapshot.Workload
	// templates use the account, with pods or without.
	templates []snapshot.PodOwner
	// unread is true where the workloads, or the templates, could not be read.
	unread bool
}

// readOwners reads the workloads of the service accounts that the findings name, those
// of failures first.
func readOwners(ctx context.Context, cluster *snapshot.Cluster, inUse []removal) owners {
	ctx, cancel := context.WithTimeout(ctx, ownersTimeout)
	defer cancel()
	found := owners{}
	for _, user := range accountsOf(inUse) {
		namespace, account, _ := serviceAccount(user)
		workloads, err := cluster.WorkloadsOf(ctx, namespace, account)
		templates, unread := cluster.PodOwners(ctx, namespace, account)
		if err != nil {
			workloads = nil // those of the first pages look like all
		}
		found[user] = owner{namespace: namespace, workloads: workloads, templates: templates, unread: err != nil || unread != nil}
	}
	return found
}

// accountsOf are the users of the first clients that are service accounts, at most
// maxOwned.
func accountsOf(inUse []removal) []string {
	failing := func(api removal) bool { return api.outcome == preflight.Fail }
	rest := slices.DeleteFunc(slices.Clone(inUse), failing)
	failures := slices.DeleteFunc(slices.Clone(inUse), func(api removal) bool { return !failing(api) })
	var users []string
	for _, api := range slices.Concat(failures, rest) {
		for _, client := range api.clients.first() {
			if _, _, ok := serviceAccount(client.User); ok && len(users) < maxOwned && !slices.Contains(users, client.User) {
				users = append(users, client.User)
			}
		}
	}
	return users
}

// serviceAccount parses the user name of a service account.
func serviceAccount(user string) (namespace, account string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, account, _ = strings.Cut(rest, ":")
	valid := len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(account)) == 0
	return namespace, account, valid
}

// String names the first workloads, and is empty without any.
func (o owner) String() string {
	var texts []string
	for _, workload := range o.workloads[:min(len(o.workloads), maxWorkloads)] {
		text := o.name(workload.Kind, workload.Name)
		if workload.Installation != "" {
			text += " (" + workload.Installer + " " + words.Line(workload.Installation, maxClientName) + ")"
		}
		texts = append(texts, text)
	}
	return words.ListOf(texts, len(o.workloads))
}

func (o owner) name(kind, name string) string {
	return words.Line(kind, maxClientName) + " " + o.namespace + "/" + words.Line(name, maxClientName)
}

// change is the last change of all workloads of a client.
type change struct {
	// at is when it took effect.
	at time.Time
	// text names one workload and its change.
	text string
	// period is the longest period of the schedules of its CronJobs.
	period time.Duration
	// scheduled is true where all its workloads are CronJobs.
	scheduled bool
}

// interactive are programs that are run by hand; a change of a workload does not explain
// their silence.
func interactive() []string {
	return []string{"kubectl", "oc", "helm", "Helm", "curl", "Mozilla", "k9s"}
}

// changeOf is the last change of the workloads of a client, where all of them changed
// after its last use, in an hour that ended at end. doubt is why that is unknown.
func (o owners) changeOf(client snapshot.APIClient, end time.Time) (last change, doubt string) {
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
