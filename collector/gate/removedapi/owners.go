package removedapi

import (
	"context"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

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
		found[user] = owner{namespace: namespace, workloads: workloads, templates: templates, unread: err != nil || unread != nil || missing.Err() != nil}
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
