// Package console answers: where does a user of the OpenShift web console see the verdict?
//
// A [Keeper] maintains these objects, independently of each other:
//
//   - a ConsoleLink to the console's own page of the UpdatePreflights;
//   - a ConsoleNotification, a banner for all users, while a [Notice] is current;
//   - a ConsoleCLIDownload with the programs of this version, if their address is configured;
//   - a dashboard of the metrics, in a ConfigMap that the console reads.
//
// They are advice: an error is logged and retried, and affects nothing else. If the API server does not serve the API
// of the console, such as on Kubernetes without OpenShift, nothing is done. An object of another client with the same
// name is not changed.
package console

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/owned"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

const (
	// refresh is the longest time between two applications: an object that was deleted, and one whose API is served
	// only now, exists after it.
	refresh = time.Hour
	// firstRetry is the pause after an error. It doubles up to refresh.
	firstRetry = 10 * time.Second
	// roundTimeout bounds one application.
	roundTimeout = time.Minute
	// maxAddress bounds an address to which a path is appended, in bytes.
	maxAddress = 1024
	// maxCause bounds an error in the log, in bytes.
	maxCause = 512
)

// Keeper keeps the objects of a cluster.
type Keeper struct {
	cluster   *cluster.Cluster
	downloads *url.URL
	version   string
	logger    *slog.Logger
	// changed has room for one value: there are other notices.
	changed chan struct{}
	// page is the page of the UpdatePreflights, as it was read last; empty where there is none. It is logged when it
	// was read first, and when it changes.
	page   string
	logged bool
	// failure is the error that was logged last, and pause the time until the next attempt after it.
	failure string
	pause   time.Duration

	mutex   sync.Mutex
	notices []Notice
}

// New returns a Keeper without sending a request. The programs of the version are below the address downloads; New
// returns an error if it is not a valid [Address]; empty for none. A version that is not a release has no downloads.
func New(c *cluster.Cluster, downloads, version string, logger *slog.Logger) (*Keeper, error) {
	keeper := &Keeper{cluster: c, version: version, logger: logger, changed: make(chan struct{}, 1)}
	if downloads == "" {
		return keeper, nil
	}
	base, err := Address(downloads)
	if err != nil {
		return nil, err
	}
	if !regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$`).MatchString(version) {
		logger.Warn("the console has no downloads: this program is not from a release", "version", version)
		return keeper, nil
	}
	keeper.downloads = base
	return keeper, nil
}

// Address parses an address to which a path can be appended: https with a host, without user, query and fragment, at
// most 1024 bytes. The API of the console accepts no other scheme.
func Address(text string) (*url.URL, error) {
	parsed, err := url.Parse(text)
	if err != nil || len(text) > maxAddress || parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.User != nil ||
		strings.ContainsAny(text, "?#") {
		return nil, fmt.Errorf("it must be https:// with a host, without user, query and fragment, of at most %d bytes", maxAddress)
	}
	return parsed, nil
}

// Set replaces the notices. The first current one is shown. Until the first call nothing is done: the objects of the
// former leader stay.
func (k *Keeper) Set(notices ...Notice) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	same := k.notices != nil && slices.EqualFunc(notices, k.notices,
		func(a, b Notice) bool { return a.Text == b.Text && !a.Until.Before(b.Until) })
	k.notices = append([]Notice{}, notices...)
	if same { // a later end is seen at the former one
		return
	}
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Start applies the objects whenever the notices change or one ends, and once an hour, until ctx is done.
func (k *Keeper) Start(ctx context.Context) error {
	var timer <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.changed:
			k.pause = 0
		case <-timer:
		}
		timer = time.After(k.round(ctx))
	}
}

// round applies the objects, and returns when to do it again.
func (k *Keeper) round(ctx context.Context) time.Duration {
	k.mutex.Lock()
	notices := k.notices
	k.mutex.Unlock()
	bounded, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	next, err := k.Apply(bounded, notices)
	wait := refresh
	if !next.IsZero() {
		wait = min(wait, max(time.Second, next.Sub(k.cluster.Now())))
	}
	if err == nil || ctx.Err() != nil {
		k.failure, k.pause = "", 0
		return wait
	}
	if err.Error() != k.failure {
		k.failure = err.Error()
		k.logger.Warn("the objects for the console are incomplete", "error", words.Lines(k.failure, maxCause))
	}
	k.pause = min(max(firstRetry, 2*k.pause), refresh)
	return min(wait, k.pause)
}

// Apply applies all objects once, with the first notice that is current, and removes the objects that must not exist.
// It continues after errors, and returns all of them. Call it again at next, when the notice ends; zero for none. It
// must not be called concurrently.
func (k *Keeper) Apply(ctx context.Context, notices []Notice) (next time.Time, err error) {
	served, err := k.served(ctx, group())
	if err != nil || len(served) == 0 {
		return time.Time{}, err
	}
	pageErr := k.readPage(ctx)
	notice := current(notices, k.cluster.Now())
	contents := map[string]map[string]any{
		kindLink: linkContent(k.page), kindNotification: notificationContent(notice, k.page),
		kindDownload:  downloadContent(k.downloads, k.version),
		kindDashboard: dashboardContent(),
	}
	errs := []error{pageErr}
	for _, each := range all(k.cluster.Dynamic) {
		object := each.All[0]
		if object.Group == group().Group && !served[object.Resource] {
			continue
		}
		errs = append(errs, keep(ctx, each, contents[object.Kind]))
	}
	return notice.Until, errors.Join(errs...)
}

// keep gives the object of a set its content, or removes it where that is nil.
func keep(ctx context.Context, of owned.Objects, content map[string]any) error {
	if content == nil {
		_, err := of.Remove(ctx)
		return err
	}
	if _, err := of.Read(ctx); err != nil {
		return err
	}
	object := of.All[0]
	made := &unstructured.Unstructured{Object: content}
	made.SetAPIVersion(object.GroupVersion().String())
	made.SetKind(object.Kind)
	made.SetNamespace(object.Namespace)
	made.SetName(object.Name)
	return of.Apply(ctx, []*unstructured.Unstructured{made})
}

// served are the resources of a version of an API that the API server serves; none where it does not serve the API.
// Every user may list them.
func (k *Keeper) served(ctx context.Context, version schema.GroupVersion) (map[string]bool, error) {
	client := discovery.ToServerResourcesInterfaceWithContext(k.cluster.Kubernetes.Discovery())
	listed, err := client.ServerResourcesForGroupVersionWithContext(ctx, version.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("it is unknown whether %s is served: %w", version, err)
	}
	served := map[string]bool{}
	for _, resource := range listed.APIResources {
		served[resource.Name] = true
	}
	return served, nil
}

// readPage reads where the console shows the UpdatePreflights. The page is the last one where that is unknown, and empty
// without the console or the CustomResourceDefinition.
func (k *Keeper) readPage(ctx context.Context) error {
	served, err := k.served(ctx, v1alpha1.GroupVersion())
	if err != nil {
		return err
	}
	found, err := k.cluster.Dynamic.Resource(consoles()).Get(ctx, consoleName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("could not read the URL of the console: %w", err)
	}
	page := ""
	if err == nil && served[v1alpha1.Resource] {
		text, _, _ := unstructured.NestedString(found.Object, "status", "consoleURL") // empty where malformed
		base, invalid := Address(text)
		if invalid == nil {
			page = base.JoinPath("k8s", "cluster", fmt.Sprintf("%s~%s~%s", v1alpha1.Group, v1alpha1.Version, v1alpha1.Kind)).String()
		}
	}
	if page != k.page || !k.logged {
		k.logger.Info("the page of the UpdatePreflights in the console", "url", cmp.Or(page, "none"))
	}
	k.page, k.logged = page, true
	return nil
}

// Uninstall deletes all objects, and returns those that it has deleted. It does all of this that it can, and may be
// repeated. The controller must have ended, which would apply them again.
func Uninstall(ctx context.Context, client dynamic.Interface) ([]preflight.Object, error) {
	var deleted []preflight.Object
	var errs []error
	for _, each := range all(client) {
		removed, err := each.Remove(ctx)
		deleted = append(deleted, removed...)
		errs = append(errs, err)
	}
	return deleted, errors.Join(errs...)
}

// Needs are the permissions of [Keeper.Start]. Each is optional: without it the object is missing, and the log has why.
func Needs() access.Needs {
	needs := access.Needs{Optional: []access.Request{{Verb: "get", Group: consoles().Group, Resource: consoles().Resource, Name: consoleName}}}
	for _, each := range all(nil) {
		verbs := []string{"get", "create", "patch", "delete"}
		if each.All[0].Kind == kindDashboard {
			verbs = verbs[:3] // it is always wanted
		}
		needs.Optional = append(needs.Optional, each.All[0].Requests(verbs...)...)
	}
	return needs
}

// UninstallNeeds are the permissions of [Uninstall].
func UninstallNeeds() access.Needs {
	var needs access.Needs
	for _, each := range all(nil) {
		needs.Required = append(needs.Required, each.All[0].Requests("get", "delete")...)
	}
	return needs
}

const (
	// maxText bounds a notice, and maxVersion the version in it, in bytes.
	maxText    = 200
	maxVersion = 80
)

// Notice is a line of text for all users of the console.
type Notice struct {
	Text string
	// Until is when the notice ends.
	Until time.Time
}

// current is the first notice that has not ended; the zero value for none.
func current(notices []Notice, now time.Time) Notice {
	for _, notice := range notices {
		if now.Before(notice.Until) {
			return notice
		}
	}
	return Notice{}
}

// Notices are about problems that keep the cluster from a requested state, the newest request first: the verdict on the
// selected update, which is the first target, is Blocked; the cluster has regressed since the last update. They contain
// numbers and no names: not every user of the console may read the objects.
//
// There is no other notice. An offered update was not requested. Undecided is the usual verdict until a run has ended;
// a notice blocks nothing, so its absence permits nothing. An update that was rolled back is over, by the decision of
// an administrator. A regression is shown as long as the update is evaluated, until a day after the last judgement: it
// is unknown whether it was repaired later.
func Notices(targets []runplan.Target, decided runplan.Verdicts, after afterupdate.Report) []Notice {
	var notices []Notice
	if len(targets) > 0 && targets[0].Requester == record.BySelection {
		target := targets[0]
		stored, found := decided[target.Covered()]
		if until, ok := standing.ValidUntil(stored); found && ok && stored.Holds() && stored.Verdict.Decision == verdict.Blocked {
			version := cmp.Or(target.Version, stored.Target.Version, target.Digest())
			notices = append(notices, notice(until, "The preflight blocks the update to %s", version,
				words.Count(len(stored.Verdict.Blocking), "finding")))
		}
	}
	if last, err := time.Parse(time.RFC3339, after.Samples.Last); err == nil && after.Decision == afterupdate.Regressed {
		until := last.Add(judgement.Window)
		notices = append(notices, notice(until, "The cluster has regressed since the update to %s", after.Update.To,
			words.Count(after.Counts.Regressions, "problem")))
	}
	return notices
}

func notice(until time.Time, format, version, count string) Notice {
	return Notice{Text: words.Line(fmt.Sprintf(format, words.Line(version, maxVersion))+": "+count+".", maxText), Until: until}
}

// Name is the name of the objects of the console, and Dashboard the name of the ConfigMap in Namespace, where the
// console looks for dashboards.
const (
	Name      = "update-preflight"
	Dashboard = "update-preflight-dashboard"
	Namespace = "openshift-config-managed"

	kindLink         = "ConsoleLink"
	kindNotification = "ConsoleNotification"
	kindDownload     = "ConsoleCLIDownload"
	kindDashboard    = "ConfigMap"

	consoleName = "cluster"
)

func group() schema.GroupVersion {
	return schema.GroupVersion{Group: "console.openshift.io", Version: "v1"}
}

// consoles are the resource whose object consoleName has the URL of the console.
func consoles() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "consoles"}
}

//go:embed dashboard.json
var dashboard string

// all are the objects, each as a set of its own: it comes and goes by itself.
func all(client dynamic.Interface) []owned.Objects {
	one := func(object owned.Object) owned.Objects {
		return owned.Objects{Switch: "console", Client: client, All: []owned.Object{object}, Optional: true}
	}
	return []owned.Objects{
		one(owned.Object{GroupVersionResource: group().WithResource("consolenotifications"), Kind: kindNotification, Name: Name}),
		one(owned.Object{GroupVersionResource: group().WithResource("consolelinks"), Kind: kindLink, Name: Name}),
		one(owned.Object{GroupVersionResource: group().WithResource("consoleclidownloads"), Kind: kindDownload, Name: Name}),
		one(owned.Object{
			GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: kindDashboard, Namespace: Namespace,
			Name: Dashboard,
		}),
	}
}

// linkContent is in the application menu, whose sections have headings: the others are for help, for what concerns the
// user, and for one namespace. Without a page there is no link.
func linkContent(page string) map[string]any {
	if page == "" {
		return nil
	}
	return map[string]any{"spec": map[string]any{
		"href": page, "text": "Update preflight", "location": "ApplicationMenu", "applicationMenu": map[string]any{"section": "Cluster updates"},
	}}
}

// notificationContent has no link without a page.
func notificationContent(notice Notice, page string) map[string]any {
	if notice.Text == "" {
		return nil
	}
	spec := map[string]any{"text": notice.Text, "location": "BannerTop"}
	if page != "" {
		spec["link"] = map[string]any{"href": page, "text": "Show the preflights"}
	}
	return map[string]any{"spec": spec}
}

// program and checksums are names in a release, and platforms are those for which it has an archive with the program
// (.goreleaser.yaml).
const (
	program   = "oc-preflight"
	checksums = "SHA256SUMS"
	platforms = "linux_amd64 linux_arm64 linux_ppc64le linux_s390x darwin_amd64 darwin_arm64 windows_amd64 windows_arm64"
)

// downloadContent has the files of a version below an address; nil without one.
func downloadContent(base *url.URL, version string) map[string]any {
	if base == nil {
		return nil
	}
	link := func(file, text string) any {
		return map[string]any{"href": base.JoinPath(version, file).String(), "text": text}
	}
	var links []any
	for platform := range strings.FieldsSeq(platforms) {
		extension := ".tar.gz"
		if strings.HasPrefix(platform, "windows") {
			extension = ".zip"
		}
		links = append(links, link(program+"_"+platform+extension,
			fmt.Sprintf("Download %s for %s", program, strings.Replace(platform, "_", " ", 1))))
	}
	return map[string]any{"spec": map[string]any{
		"displayName": program + " - OpenShift update preflight", "links": append(links, link(checksums, "Checksums")),
		"description": "`oc preflight` checks whether it is safe to update this cluster to a release, and explains " +
			"how to fix problems.",
	}}
}

// dashboardContent has one key: the console reads one.
func dashboardContent() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"console.openshift.io/dashboard": "true"}},
		"data":     map[string]any{"update-preflight.json": dashboard},
	}
}
