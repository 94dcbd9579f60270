// Package published answers: where does the cluster-version operator (CVO) find the recorded verdicts?
//
// In one ConfigMap of the namespace openshift-config-managed, which CVO caches and in which it trusts the admin gates.
// A CVO that links runner/trigger/cvo reads it without a request. The key of a release is the digest of the image with
// "-" for ":", and the value the list of verdict.json of the runs of that release, newest first, as package record
// documents them. Only authentic verdicts are published, because a reader of the ConfigMap cannot verify them. Two
// fields differ from the record: validUntil is [Margin] earlier, and decision is empty from then on where it was Ready,
// with the cause in ended. The key "asked" contains the coverage that the controller requires of a verdict; the
// commands require the same ([Asked]).
//
// The ConfigMap exists while the preflight is installed, even without verdicts. [Remove] sets its key "uninstalled" to
// "true" before it deletes it: CVO rejects updates if it was deleted without this key.
package published

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
)

// Namespace and Name identify the ConfigMap.
const (
	Namespace = "openshift-config-managed"
	Name      = "update-preflight"
)

// Package cvo, which reads the ConfigMap and imports nothing, has these reasons.
var _ = catalog.Reasons("The precondition Preflight of the cluster-version operator warns of the update, or rejects it.", `
PreflightAccepted | The verdict depends on accepted findings, which is a warning.
PreflightBlocked | The verdict on the update is Blocked. | Fix the problems in the report. | oc preflight status
PreflightForced | The newest run was forced and does not permit an update. | Run the preflight without --force, or force the update.
PreflightInProgress | The preflight of the update has not finished. | Wait for it. | oc preflight attach
PreflightMissing | The update has no recorded preflight. | Run it. | oc preflight run
PreflightNarrowed | The request of the verdict excluded something, which is a warning.
PreflightStale | The verdict on the update is out of date. | Run the preflight again. | oc preflight run
PreflightUndecided | The verdict on the update is Undecided. | Fix the problems in the report. | oc preflight status`)

// Margin is the time by which a published verdict ends before its record does. A record ends by
// the clock of the API server, and a reader compares with its own: CVO, which reads a cache and
// evaluates a selected update about every 15 seconds, must have started it by the end of the record,
// when the controller makes the next run. A minute covers both, and a difference of the clocks.
const Margin = time.Minute

const (
	fieldManager   = "update-preflight"
	keyUninstalled = "uninstalled"
	keyAsked       = "asked"
	// maxVerdicts and maxBytes bound what is published.
	maxVerdicts = 100
	maxBytes    = 512 << 10
	// maxCause bounds the cause of the end of a verdict, in bytes.
	maxCause = 512
)

// Content returns the data of the ConfigMap at that time, by the clock of the cluster, for these records, which are
// newest first, as [record.Store.List] returns them. It ends at the first verdict that exceeds a bound: an older
// verdict must not count in place of a newer one. A record with the field Ended has no Ready. asked is the coverage
// that the controller requires of a verdict. next is when the first published verdict expires; zero for never.
func Content(records []record.Record, asked string, now time.Time) (data map[string]string, next time.Time, err error) {
	entries := map[string][]json.RawMessage{}
	count, size := 0, 0
	for _, recorded := range records {
		if !isPublished(recorded) {
			continue
		}
		count++
		size += len(recorded.VerdictFile)
		if count > maxVerdicts || size > maxBytes {
			break
		}
		key := strings.ReplaceAll(recorded.Target.Digest(), ":", "-")
		text, until, err := stated(recorded, now)
		if err != nil {
			return nil, time.Time{}, err
		}
		if until.After(now) && (next.IsZero() || until.Before(next)) {
			next = until
		}
		entries[key] = append(entries[key], text)
	}
	data = map[string]string{keyUninstalled: "false", keyAsked: asked} // also where it was left marked
	for key, entry := range entries {
		text, err := json.Marshal(entry)
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("could not encode the verdicts on %s: %w", key, err)
		}
		data[key] = string(text)
	}
	return data, next, nil
}

// isPublished is true for an authentic record of an update from the present release, whose run is
// in progress or complete.
func isPublished(recorded record.Record) bool {
	return recorded.Verified() == nil && !recorded.Provisional && (recorded.Phase == record.Running || recorded.Phase == record.Complete)
}

// stated is verdict.json as it is published, and the end of the verdict; zero for a run in
// progress, and for a verdict without an end, which holds at no time.
func stated(recorded record.Record, now time.Time) (json.RawMessage, time.Time, error) {
	if recorded.Phase != record.Complete {
		return json.RawMessage(recorded.VerdictFile), time.Time{}, nil
	}
	var (
		file  map[string]any // also the fields of a later version
		until time.Time
	)
	if err := json.Unmarshal([]byte(recorded.VerdictFile), &file); err != nil {
		return nil, time.Time{}, fmt.Errorf("could not decode the verdict of run %s: %w", recorded.ID, err)
	}
	text, _ := file["validUntil"].(string)
	if ends, err := time.Parse(time.RFC3339, text); err == nil {
		if recorded.Ended != "" && ends.After(now) {
			ends = now
		}
		until = ends.Add(-Margin)
		file["validUntil"] = words.Time(until)
	}
	if recorded.Ended != "" {
		file["ended"] = words.Line(recorded.Ended, maxCause)
	}
	if file["decision"] == string(verdict.Ready) && !now.Before(until) {
		file["decision"] = ""
	}
	changed, err := json.Marshal(file)
	return changed, until, err
}

// Apply publishes the verdicts of these records at that time, by server-side apply, and removes additions of other
// clients. It returns when the first of them expires, like [Content]. A cluster without the namespace has no CVO:
// nothing is published, and Apply returns no error.
func Apply(ctx context.Context, client kubernetes.Interface, records []record.Record, asked string,
	now time.Time,
) (next time.Time, err error) {
	data, next, err := Content(records, asked, now)
	if err != nil {
		return time.Time{}, err
	}
	configMaps := client.CoreV1().ConfigMaps(Namespace)
	content := corev1apply.ConfigMap(Name, Namespace).WithData(data)
	applied, err := configMaps.Apply(ctx, content, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err == nil && !maps.Equal(applied.Data, data) {
		applied.Data = data
		_, err = configMaps.Update(ctx, applied, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return time.Time{}, fmt.Errorf("could not publish the verdicts in ConfigMap %s/%s: %w", Namespace, Name, err)
	}
	return next, nil
}

// Asked returns the coverage that the controller requires of a verdict, as it has published it. It is empty if the
// controller is not installed or its ConfigMap cannot be read, because the ConfigMap permits nothing by itself.
func Asked(ctx context.Context, client kubernetes.Interface) string {
	found, err := client.CoreV1().ConfigMaps(Namespace).Get(ctx, Name, metav1.GetOptions{})
	if err != nil || found.Data[keyUninstalled] == "true" {
		return ""
	}
	return found.Data[keyAsked]
}

// Remove marks the ConfigMap as uninstalled and deletes it, and returns it if it existed. It
// may be repeated. The controller must have ended, which would publish again.
func Remove(ctx context.Context, client kubernetes.Interface) ([]preflight.Object, error) {
	configMaps := client.CoreV1().ConfigMaps(Namespace)
	_, err := configMaps.Patch(ctx, Name, types.MergePatchType, []byte(`{"data":{"`+keyUninstalled+`":"true"}}`),
		metav1.PatchOptions{FieldManager: fieldManager})
	if err == nil {
		err = configMaps.Delete(ctx, Name, metav1.DeleteOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not delete ConfigMap %s/%s: %w", Namespace, Name, err)
	}
	return []preflight.Object{{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap", Namespace: Namespace, Name: Name}}, nil
}

// AskedNeeds are the permissions of [Asked].
func AskedNeeds() access.Needs { return access.Needs{Optional: needs("get").Required} }

// Needs are the permissions of [Apply].
func Needs() access.Needs { return needs("create", "patch", "update") }

// RemoveNeeds are the permissions of [Remove].
func RemoveNeeds() access.Needs { return needs("patch", "delete") }

func needs(verbs ...string) access.Needs {
	return access.Needs{Required: access.Verbs(access.Request{Resource: "configmaps", Namespace: Namespace, Name: Name}, verbs...)}
}
