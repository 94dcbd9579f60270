package hub

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/signature/localfile"
)

// keySuffix follows the ID of its cluster in the name of a key.
const keySuffix = ".pub"

// maxKeys bounds the number of keys.
const maxKeys = 10_000

// Keys are the public keys of clusters, one per cluster. The zero value has none.
type Keys struct {
	// of are the keys by the ID of their cluster in lower case.
	of map[string]signature.Verifier
	// notice is who has to be trusted; empty where it is the reader of a file.
	notice string
}

func (k Keys) empty() bool { return len(k.of) == 0 }

// key returns the key of the cluster with an ID; nil if there is none.
func (k Keys) key(clusterID string) signature.Verifier { return k.of[strings.ToLower(clusterID)] }

// ReadKeys reads files with the public key of a cluster in PEM, named ID.pub after its ID (spec.clusterID of
// ClusterVersion). A path is such a file, or a directory, in which other files are ignored.
func ReadKeys(ctx context.Context, paths ...string) (Keys, error) {
	texts := map[string][]byte{}
	for _, path := range paths {
		if err := readKeys(ctx, path, texts); err != nil {
			return Keys{}, err
		}
	}
	return PinKeys(texts)
}

// readKeys adds the keys of a path.
func readKeys(ctx context.Context, path string, texts map[string][]byte) error {
	if id, named := strings.CutSuffix(filepath.Base(path), keySuffix); named && id != "" {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return addKeys(ctx, filepath.Dir(path), []string{filepath.Base(path)}, texts)
		}
	}
	listed, err := os.ReadDir(path)
	if err != nil {
		return input.Errorf("the directory of the keys cannot be read: %w", err)
	}
	var names []string
	for _, each := range listed {
		if id, named := strings.CutSuffix(each.Name(), keySuffix); named && id != "" {
			names = append(names, each.Name())
		}
	}
	return addKeys(ctx, path, names, texts)
}

func addKeys(ctx context.Context, directory string, names []string, texts map[string][]byte) (err error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return input.Errorf("the directory of the keys cannot be read: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		id := strings.TrimSuffix(name, keySuffix)
		if _, twice := texts[id]; twice {
			return input.Errorf("the cluster %s has two keys", id)
		}
		if texts[id], err = readKey(root, name); err != nil {
			return input.Errorf("the key %s cannot be read: %w", name, err)
		}
	}
	return nil
}

// KeyNeeds are the permissions to read keys from a ConfigMap of the hub.
func KeyNeeds(name types.NamespacedName) access.Needs {
	return access.Needs{Required: []access.Request{{Verb: "get", Resource: "configmaps", Namespace: name.Namespace, Name: name.Name}}}
}

// KeysOfHub reads the keys in a ConfigMap of the hub: under ID.pub, the public key in PEM of the cluster with that ID.
// Other keys of the ConfigMap are ignored. Users who may write it may sign for every cluster, which [Fleet] reports.
func KeysOfHub(ctx context.Context, hub *cluster.Cluster, name types.NamespacedName) (Keys, error) {
	object, err := hub.Kubernetes.CoreV1().ConfigMaps(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Keys{}, input.Errorf("the ConfigMap %s with the keys does not exist in the namespace %s of this hub; "+
			"create it with: oc create configmap %s -n %s --from-file=DIRECTORY", name.Name, name.Namespace, name.Name, name.Namespace)
	}
	if err != nil {
		return Keys{}, fmt.Errorf("could not read the ConfigMap %s with the keys: %w", name, err)
	}
	texts := map[string][]byte{}
	for key, text := range object.Data {
		if id, named := strings.CutSuffix(key, keySuffix); named && id != "" {
			texts[id] = []byte(text)
		}
	}
	keys, err := PinKeys(texts)
	if err != nil {
		return Keys{}, input.Errorf("the ConfigMap %s: %w", name, err)
	}
	keys.notice = fmt.Sprintf("the public keys are read from the ConfigMap %s of the hub: a user who may write it "+
		"can replace the key of any cluster",
		name)
	return keys, nil
}

func readKey(root *os.Root, name string) ([]byte, error) {
	file, err := localfile.OpenRegularIn(root, name)
	if err != nil {
		return nil, err
	}
	return localfile.ReadAll(file, attestation.MaxKey+1)
}

// PinKeys returns these keys in PEM, by the ID of their cluster. It returns an error if two clusters have the same key:
// one of them could sign for the other.
func PinKeys(texts map[string][]byte) (Keys, error) {
	if len(texts) == 0 {
		return Keys{}, input.Errorf("there is no key: the key of a cluster is named ID%s", keySuffix)
	}
	if len(texts) > maxKeys {
		return Keys{}, input.Errorf("there are more than %d keys", maxKeys)
	}
	pinned, owners := Keys{of: map[string]signature.Verifier{}}, map[string]string{}
	for id, text := range texts {
		key, err := attestation.PublicKey(text)
		if err != nil {
			return Keys{}, input.Errorf("the key of the cluster %s: %w", id, err)
		}
		print, err := fingerprint(key)
		if err != nil {
			return Keys{}, input.Errorf("the key of the cluster %s: %w", id, err)
		}
		if other, used := owners[print]; used {
			both := []string{id, other}
			slices.Sort(both)
			return Keys{}, input.Errorf("the clusters %s and %s have the same key: each could sign for the other", both[0], both[1])
		}
		if _, known := pinned.of[strings.ToLower(id)]; known {
			return Keys{}, input.Errorf("the cluster %s has two keys whose names differ only in letter case", strings.ToLower(id))
		}
		owners[print], pinned.of[strings.ToLower(id)] = id, key
	}
	return pinned, nil
}

func fingerprint(key signature.Verifier) (string, error) {
	public, err := key.PublicKey()
	if err != nil {
		return "", err
	}
	text, err := x509.MarshalPKIXPublicKey(public)
	return string(text), err
}

// maxNarrowed is how many texts about what a verdict leaves out are listed.
const maxNarrowed = 10

// causeHub names the causes about how a verdict came to the hub.
const causeHub = "HubReport"

func (q Query) row(of managedCluster, report reported, now time.Time) fleet.Row {
	row := fleet.Row{
		Cluster: fleet.Cluster{Name: of.name, ID: of.id, Labels: of.labels, Source: "hub"},
		State:   fleet.Undecided, Version: of.version, Target: q.To,
	}
	row.Target = cmp.Or(row.Target, report.values.version)
	row.Observed = report.values.reportTime
	switch {
	case of.absent != "":
		row.State, row.Message = fleet.NotInstalled, of.absent
		return row
	case of.silent != "":
		row.State, row.Message = fleet.Unreachable, of.silent
		return row
	case report.problem != nil:
		return undecided(row, report.problem)
	}
	row.Evidence = report.source
	if problem := q.current(of, report, now); problem != nil {
		return undecided(row, problem)
	}
	if report.values.updated == "True" && report.values.version == row.Target {
		if !q.Keys.empty() {
			return undecided(row, problemf("UpdateNotSigned", "the cluster reports that it runs the release already, and only verdicts are signed"))
		}
		row.State, row.Message, row.Version = fleet.Updated, "the cluster runs the release already; nothing was evaluated", row.Target
		return row
	}
	return q.decided(row, of, report, now)
}

// about is the newest report of a cluster about the version of the query.
func (q Query) about(cluster string, all reports) reported {
	for _, each := range all.of[cluster] {
		if q.To == "" || each.values.version == q.To || each.values.version == "" &&
			(each.signedOnly || each.name == "" || each.name == ObjectName(q.To)) {
			return each
		}
	}
	if len(all.unread) > 0 {
		unread := problemf("NotRead", "the user may not list the %s of the hub, so the report of this cluster on the "+
			"update is unknown",
			strings.Join(all.unread, " and "))
		unread.actions = []finding.Action{all.roles()}
		return reported{problem: unread}
	}
	return reported{problem: problemf("NotAsked", "the hub has no report of this cluster on the update")}
}

// ObjectName is the name of the UpdatePreflight with which a hub requests a preflight of the update to a version.
func ObjectName(version string) string {
	return "fleet-" + strings.ToLower(strings.ReplaceAll(version, "+", "-"))
}

// current is why a report does not count at that time; nil where it does.
func (q Query) current(of managedCluster, report reported, now time.Time) *problem {
	switch {
	case of.shared:
		return problemf("SameID", "another cluster of this hub claims the same ID %s", words.External(of.id))
	case of.clock != "":
		return &problem{reason: "ClockNotSynced", message: of.clock}
	case report.signedOnly:
		return nil // the statement has its own time
	case report.values.reportTime == "":
		return problemf("NotReported", "the controller of the cluster has not reported yet")
	}
	at, err := time.Parse(time.RFC3339, report.values.reportTime)
	switch {
	case err != nil:
		return problemf("NotReported", "the report of the cluster has no valid time")
	case at.After(now.Add(time.Hour)):
		return problemf("OfTheFuture", "the report is dated %s, which is more than an hour ahead of the clock of the "+
			"hub", words.Time(at))
	case at.Add(MaxAge).Before(now):
		return problemf("Outdated", "the report is dated %s, older than %s: the controller or the agent of the "+
			"cluster is not running", words.Time(at),
			MaxAge)
	}
	return nil
}

func (q Query) decided(row fleet.Row, of managedCluster, report reported, now time.Time) fleet.Row {
	if q.Keys.empty() {
		if report.signedOnly {
			return undecided(row, problemf("NoKey", "a verdict from a ManagedClusterView counts only if it is "+
				"signed, and no public keys were provided"))
		}
		return unsigned(row, report.values, now)
	}
	key := q.Keys.key(of.id)
	switch {
	case key == nil:
		return undecided(row, problemf("NoKey", "there is no public key of the cluster %s", words.External(cmp.Or(of.id, "without an ID"))))
	case report.values.attestation == "" && report.values.decision != "":
		return undecided(row, problemf("NotSigned", "the verdict of the cluster is not signed"))
	case report.values.attestation == "":
		return unsigned(row, report.values, now)
	}
	made := attestation.Verify([]byte(report.values.attestation), key, attestation.Expectation{Cluster: of.id, Release: row.Target}, now)
	if made.Result != attestation.Valid {
		return undecided(row, &problem{reason: made.Reason, message: made.Message})
	}
	row.Evidence = "signed by the key of the cluster"
	stated := made.Statement
	row.Target, row.Until, row.Observed = stated.Target.Version, stated.Verdict.ValidUntil, cmp.Or(row.Observed, stated.Run.CompletionTime)
	if stated.Verdict.Forced {
		return undecided(row, problemf("Forced", "the run was forced and does not permit an update"))
	}
	if stated.Verdict.Decision == verdict.Ready && !made.Permits() {
		return undecided(row, problemf("Narrowed", "the verdict is Ready, but its request excluded %s",
			words.List(stated.Verdict.Narrowed, maxNarrowed)))
	}
	row.State = fleet.StateOf(stated.Verdict.Decision)
	row.Causes = append(causesOf(stated.Verdict.Blocking, preflight.Fail, ""), causesOf(stated.Verdict.Undecided, preflight.Unknown, "")...)
	return contradicted(row)
}

// unsigned is the row with the decision of values that are not signed.
func unsigned(row fleet.Row, of values, now time.Time) fleet.Row {
	until, err := time.Parse(time.RFC3339, of.validUntil)
	switch {
	case of.decision == "":
		return undecided(row, problemf("NoVerdict", "the cluster has no valid verdict on the update (%s): %s", words.External(of.phase),
			words.External(of.message)))
	case err != nil || !now.Before(until):
		return undecided(row, problemf("Expired", "the verdict of the cluster has expired"))
	}
	row.State, row.Until = fleet.StateOf(verdict.Decision(of.decision)), of.validUntil
	outcome := preflight.Unknown
	if row.State == fleet.Blocked {
		outcome = preflight.Fail
	}
	if of.causes != "" {
		row.Causes = causesOf(strings.Split(of.causes, ","), outcome, of.message)
	}
	return contradicted(row)
}

// contradicted is the row with a cause where its state needs one.
func contradicted(row fleet.Row) fleet.Row {
	if len(row.Causes) == 0 && row.State != fleet.Ready && row.State != fleet.Updated {
		return undecided(row, problemf("NoCause", "the verdict is %s, but names no cause", row.State))
	}
	return row
}

func causesOf(names []string, outcome preflight.Outcome, message string) []fleet.Cause {
	reason := map[preflight.Outcome]string{preflight.Fail: "Blocks", preflight.Unknown: "Inconclusive"}[outcome]
	var causes []fleet.Cause
	for _, name := range names {
		causes = append(causes, fleet.Cause{
			Name: name, Outcome: outcome, Reason: reason, Message: cmp.Or(message, "The verdict of the cluster "+
				"contains the finding."),
			Remediation: explained[reason].Remedy,
		})
	}
	return causes
}

// undecided is the row with a cause about how the verdict came to the hub.
func undecided(row fleet.Row, because *problem) fleet.Row {
	row.State = fleet.Undecided
	row.Message = because.message
	row.Causes = []fleet.Cause{{
		Name: causeHub, Outcome: preflight.Unknown, Reason: because.reason, Message: words.Sentence(because.message),
		Remediation: remedy(because.reason), Actions: because.actions,
	}}
	return row
}

// remedy returns the remedy for a report that does not count. For an attestation, it is the remedy of its package, if
// waiting helps.
func remedy(reason string) string {
	switch reason {
	case "ValidityEnded", "NotComplete":
		reason = "NoVerdict"
	}
	return cmp.Or(explained[reason].Remedy, explained["NoCause"].Remedy)
}

// The remedies that several reasons have.
const (
	awaitAgent = "Fix the problem in the object's condition on the hub, and wait until the agent of the cluster has " +
		"applied the object."
	applySet   = "Apply the ManifestWorkReplicaSet of manifests/open-cluster-management/target for this version to the Placement."
	startAgain = "Find out why the pod of the controller in the namespace openshift-update-preflight of the cluster, " +
		"or the agent of the hub, is not running."
	setClock   = "Correct the clock of the cluster or of the hub."
	sign       = "Configure the controller of the cluster to sign (--signing-secret), and store its public key as ID.pub."
	awaitRun   = "Wait for the next run in the cluster, or read why there is none: oc get updatepreflights."
	showReport = "Show the report of the cluster, which contains the remedy of the finding: `oc preflight status` in " +
		"that cluster."
)

var explained = catalog.Reasons("The report of a cluster on a hub does not count, or contains only the name of a finding.", `
Blocks | A finding blocks the cluster; its verdict contains only the finding's name. | `+showReport+`
ClockNotSynced | The clock of the cluster differs from the hub's. | `+setClock+`
Expired | The verdict of the cluster has expired. | `+awaitRun+`
Forced | The run was forced and does not permit an update. | Run the preflight in the cluster again, without force.
Inconclusive | A finding leaves the cluster undecided; its verdict contains only the finding's name. | `+showReport+`
Narrowed | The request of the verdict excluded something. | Run the preflight in the cluster again, without ignoring or excluding anything.
NoAnswer | The cluster has not answered the ManagedClusterView. | `+awaitAgent+`
NoCause | The verdict is not Ready, but names no cause. | Do not update the cluster before you know who changed its report.
NoFeedback | The work agent reports no feedback about the UpdatePreflight. | `+awaitAgent+`
NoKey | The public key of the cluster is not on the hub, or was not provided. | `+sign+`
NoObject | The ManifestWork contains no UpdatePreflight for the cluster. | `+applySet+`
NoVerdict | The cluster has no valid verdict on the update. | `+awaitRun+`
NotApplied | The work agent has not applied the ManifestWork in the cluster. | `+awaitAgent+`
NotAsked | No ManifestWork requests a preflight of the update in the cluster. | `+applySet+`
NotAvailable | The UpdatePreflight does not exist in the cluster. | `+awaitAgent+`
NotRead | The user may not list the reports. | Ask an administrator of the hub to apply the roles that the command prints.
NotReadable | The content of a ManagedClusterView is not a report. | `+awaitAgent+`
NotReported | The controller of the cluster has not reported, or its report has no time. | `+startAgain+`
NotSigned | The verdict of the cluster is not signed. | `+sign+`
OfTheFuture | The time of the report is more than an hour ahead of the clock of the hub. | `+setClock+`
Outdated | The report is old: the controller or the agent of the cluster is not running. | `+startAgain+`
SameID | Two clusters claim the same ID. | Detach the cluster whose ClusterVersion has a different spec.clusterID.
UpdateNotSigned | The cluster reports that it runs the release, but only verdicts are signed. | Compare status.history of
	ClusterVersion in the cluster.`)
