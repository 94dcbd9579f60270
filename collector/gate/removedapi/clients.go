package removedapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/apiuse"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// maxNamedClients bounds the clients of one API that a message names.
const maxNamedClients = 5

// clients are the clients of an API, without Kubernetes' own controllers.
type clients struct {
	// named are sorted by their last hour of use, the latest first, and then by their requests.
	named []apiuse.Client
	// unnamed counts the requests of clients that the cluster does not name.
	unnamed int64
	// reported and unnamedHours are copied from [snapshot.APIUse].
	reported, unnamedHours []time.Time
	owners                 owners
	// writers are the field managers of stored objects.
	writers []snapshot.Writer
}

// isOwnController reports whether a client is one of Kubernetes' own controllers. During the
// bootstrap of a cluster, which is in the counts for a day, they act as system:admin; the alert
// APIRemovedInNextReleaseInUse of the API server leaves them out by their program.
func isOwnController(client apiuse.Client) bool {
	if slices.Contains(ownControllers(), client.User) {
		return true
	}
	program, _, _ := strings.Cut(client.Agent, "/")
	return client.User == "system:admin" && slices.Contains([]string{"kube-controller-manager", "cluster-policy-controller"}, program)
}

// ownControllers are the users of Kubernetes' own controllers. They read every API, so their
// requests do not indicate use (the OpenShift documentation recommends to ignore them).
func ownControllers() []string {
	return []string{
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:serviceaccount:kube-system:namespace-controller",
		"system:kube-controller-manager",
		"system:cluster-policy-controller",
	}
}

func clientsOf(use apiuse.Use) clients {
	found := clients{unnamed: use.Requests, reported: use.Reported, unnamedHours: use.UnnamedHours}
	for _, client := range use.Clients {
		found.unnamed -= client.Requests
		if client.Requests > 0 && !isOwnController(client) {
			found.named = append(found.named, client)
		}
	}
	return found
}

func (c clients) any() bool { return len(c.named) > 0 || c.unnamed > 0 }

func (c clients) first() []apiuse.Client { return c.named[:min(len(c.named), maxNamedClients)] }

// String names the first clients. Clients are empty if the API server's metrics measured the use.
func (c clients) String() string {
	var texts []string
	for _, client := range c.first() {
		texts = append(texts, c.describe(client))
	}
	if more := len(c.named) - len(texts); more > 0 {
		texts = append(texts, words.Count(more, "more client"))
	}
	if c.unnamed > 0 {
		texts = append(texts, "unnamed clients: "+words.Count(c.unnamed, "request"))
	}
	if len(texts) == 0 {
		return "the API server's metrics do not name the clients"
	}
	if len(c.writers) > 0 {
		texts = append(texts, "stored objects were written with it by "+describeWriters(c.writers))
	}
	return "by " + strings.Join(texts, "; ")
}

// describe names a client, its requests, their verbs, the last hour with a request and its workloads.
func (c clients) describe(client apiuse.Client) string {
	text := fmt.Sprintf("%s with %q: %s", words.Line(client.User, maxClientName), words.Line(client.Agent, maxClientName),
		words.Count(client.Requests, "request"))
	if len(client.Verbs) > 0 {
		text += " (" + verbsOf(client.Verbs) + ")"
	}
	if !client.LastUse.IsZero() {
		text += ", last used " + client.LastUse.Format("2006-01-02 15:04") + client.LastUse.Add(time.Hour-time.Minute).Format("-15:04 MST")
	}
	if workloads := c.owners[client.User].String(); workloads != "" {
		text += ", from " + workloads
	}
	return text
}

func verbsOf(verbs []string) string {
	const length = 20
	var texts []string
	for _, verb := range verbs {
		texts = append(texts, words.Line(verb, length))
	}
	return strings.Join(texts, ", ")
}

// maxNamedWriters bounds the field managers that a message names.
const maxNamedWriters = 3

// replaced are the APIs that replace those which Kubernetes removes from 1.32 on and whose
// objects are stored, with metadata that is not confidential.
func replaced() []schema.GroupVersionResource {
	flow, admission := flowcontrolv1.SchemeGroupVersion, admissionregistrationv1.SchemeGroupVersion
	return []schema.GroupVersionResource{
		flow.WithResource("flowschemas"), flow.WithResource("prioritylevelconfigurations"),
		admission.WithResource("validatingadmissionpolicies"), admission.WithResource("validatingadmissionpolicybindings"),
	}
}

func readsReplaced() []access.Request {
	var reads []access.Request
	for _, resource := range replaced() {
		reads = append(reads, check.List(resource.Group, resource.Resource))
	}
	return reads
}

// readWriters are the field managers that wrote objects of the API, resource.version.group.
// Where they cannot be read, there are none.
func readWriters(ctx context.Context, cluster *snapshot.Cluster, api string) []snapshot.Writer {
	for _, resource := range replaced() {
		rest, ok := strings.CutPrefix(api, resource.Resource+".")
		version, group, _ := strings.Cut(rest, ".")
		if !ok || group != resource.Group || version == resource.Version {
			continue
		}
		if writers, err := cluster.WritersOf(ctx, resource, version); err == nil {
			return writers
		}
	}
	return nil
}

func describeWriters(writers []snapshot.Writer) string {
	var texts []string
	for _, writer := range writers[:min(len(writers), maxNamedWriters)] {
		texts = append(texts, fmt.Sprintf("field manager %q (%s)", words.Line(writer.Manager, maxClientName),
			words.Count(writer.Objects, "object")))
	}
	return words.ListOf(texts, len(writers))
}

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
		return change{}, "no workload that rolls out uses the service account"
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
		return change{}, "its program is run by hand"
	}
	return last, ""
}

// unmanaged is empty where every workload with pods has a template.
func (o owner) unmanaged() string {
	for _, workload := range o.workloads {
		if !slices.ContainsFunc(o.templates, func(t snapshot.PodOwner) bool { return t.Kind == workload.Kind && t.Name == workload.Name }) {
			return fmt.Sprintf("the next run of %s is unknown", o.name(workload.Kind, workload.Name))
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

const (
	// maxWorkloads bounds the workloads of one service account that a message names.
	maxWorkloads = 3
	// ownersTimeout bounds the reading of workloads. Clients whose workloads are not read
	// are not named with them, and are not known to be fixed.
	ownersTimeout = 10 * time.Second
)

// maxClientName bounds a name in a message, in bytes.
const maxClientName = 100

type owners map[string]owner

type owner struct {
	namespace string
	// workloads have pods now.
	workloads []snapshot.Workload
	// templates use the account, with pods or without.
	templates []snapshot.PodOwner
	// unread is true where the workloads, or the templates, could not be read.
	unread bool
}

func readOwners(ctx context.Context, cluster *snapshot.Cluster, users []string) owners {
	ctx, cancel := context.WithTimeout(ctx, ownersTimeout)
	defer cancel()
	found := owners{}
	for _, user := range users {
		namespace, account, _ := serviceAccount(user)
		ctx, missing := gap.Watch(ctx)
		workloads, err := cluster.WorkloadsOf(ctx, namespace, account)
		templates, unread := cluster.PodOwners(ctx, namespace, account)
		if err != nil {
			workloads = nil // the workloads of the first pages look like all
		}
		found[user] = owner{namespace: namespace, workloads: workloads, templates: templates, unread: err != nil || unread != nil ||
			missing.Err() != nil}
	}
	return found
}

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

const (
	day = 24 * time.Hour
	// everyValue is the bit by which the parser marks a field that is "*" or "?".
	everyValue = 1 << 63
)

// cronPeriod is the longest time between two scheduled times of a CronJob that runs on
// every day, at most 24 hours. It is unknown for other schedules, and for those with a time
// zone in the text, of which the parser panics where nothing follows it.
func cronPeriod(schedule string) (time.Duration, bool) {
	if strings.Contains(schedule, "TZ=") {
		return 0, false
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return 0, false
	}
	switch parsed := parsed.(type) {
	case cron.ConstantDelaySchedule: // the parser makes one second of a shorter or a negative delay
		if parsed.Delay > time.Second && parsed.Delay <= day {
			return parsed.Delay, true
		}
	case *cron.SpecSchedule:
		daily := parsed.Dom&parsed.Month&parsed.Dow&everyValue != 0
		named := strings.HasPrefix(schedule, "@") && schedule != "@hourly"
		if daily && !named && parsed.Minute != 0 && parsed.Hour != 0 {
			return longestGap(parsed), true
		}
	}
	return 0, false
}

// longestGap is the longest time between two scheduled times of a day and the next.
func longestGap(schedule *cron.SpecSchedule) time.Duration {
	first := schedule.Next(time.Time{})
	longest := time.Duration(0)
	for last := first; last.Before(first.Add(day)); {
		next := schedule.Next(last)
		longest, last = max(longest, next.Sub(last)), next
	}
	return longest
}
