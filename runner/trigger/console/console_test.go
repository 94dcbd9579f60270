package console_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	consolev1 "github.com/openshift/api/console/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/user"
)

const downloads = "https://mirror.example.com/preflight/"

// notification is the text of the banner; empty for none.
func notification(ctx context.Context, t *testing.T) string {
	t.Helper()
	var found consolev1.ConsoleNotification
	if !read(ctx, t, "ConsoleNotification", &found) {
		return ""
	}
	if found.Spec.Location != consolev1.BannerTop {
		t.Errorf("the notification is at %s", found.Spec.Location)
	}
	return found.Spec.Text
}

// shown describes the objects.
func shown(ctx context.Context, t *testing.T) []string {
	t.Helper()
	all := []string{}
	var link consolev1.ConsoleLink
	if read(ctx, t, "ConsoleLink", &link) {
		all = append(all, "link "+link.Spec.Href)
	}
	var banner consolev1.ConsoleNotification
	if read(ctx, t, "ConsoleNotification", &banner) {
		href := ""
		if banner.Spec.Link != nil {
			href = " " + banner.Spec.Link.Href
		}
		all = append(all, "notification "+banner.Spec.Text+href)
	}
	var files consolev1.ConsoleCLIDownload
	if read(ctx, t, "ConsoleCLIDownload", &files) {
		all = append(all, fmt.Sprintf("downloads %d %s", len(files.Spec.Links), files.Spec.Links[0].Href))
	}
	var board corev1.ConfigMap
	if read(ctx, t, "ConfigMap", &board) {
		all = append(all, fmt.Sprintf("dashboard %d %s", len(board.Data), board.Labels["console.openshift.io/dashboard"]))
	}
	return all
}

func apply(t *testing.T, keeper *console.Keeper, notices ...console.Notice) time.Time {
	t.Helper()
	next, err := keeper.Apply(t.Context(), notices)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// until is a notice that ends in that time.
func until(c *cluster.Cluster, text string, in time.Duration) console.Notice {
	return console.Notice{Text: text, Until: c.Now().Add(in)}
}

// Each object comes and goes by itself, whatever existed before.
func TestObjects(t *testing.T) {
	const dashboard = "dashboard 1 true"
	files := "downloads 9 " + downloads + "v1.0.0/oc-preflight_linux_amd64.tar.gz"
	link := "link " + page
	c := newWorld(t, consoleURL)
	for name, tc := range map[string]struct {
		reason, url, downloads, version string
		notices                         []console.Notice
		want                            []string
	}{
		"Installed": {reason: "there is no notice", url: consoleURL, want: []string{link, dashboard}},
		"Notice": {
			reason: "the first one that is current is shown", url: consoleURL,
			notices: []console.Notice{until(c, "ended", -time.Second), until(c, "first", time.Hour), until(c, "second", time.Hour)},
			want:    []string{link, "notification first " + page, dashboard},
		},
		"Expired": {
			reason: "a verdict that has ended is none", url: consoleURL, notices: []console.Notice{until(c, "ended", 0)},
			want: []string{link, dashboard},
		},
		"Downloads": {
			reason: "the files of this version", url: consoleURL, downloads: downloads, version: "v1.0.0",
			want: []string{link, files, dashboard},
		},
		"Candidate": {
			reason: "a release candidate has files", url: consoleURL, downloads: downloads, version: "v1.0.0-rc.1",
			want: []string{link, strings.Replace(files, "v1.0.0", "v1.0.0-rc.1", 1), dashboard},
		},
		"Commit": {
			reason: "only a release has files", url: consoleURL, downloads: downloads, version: "v0.0.0-20261122120000-0123456789ab",
			want: []string{link, dashboard},
		},
		"Dirty": {
			reason: "only a release has files", url: consoleURL, downloads: downloads, version: "v1.0.0+dirty",
			want: []string{link, dashboard},
		},
		"Devel": {
			reason: "only a release has files", url: consoleURL, downloads: downloads, version: "(devel)",
			want: []string{link, dashboard},
		},
		"Path": {
			reason: "the console has a base path", url: consoleURL + "/ocp/",
			want: []string{strings.Replace(link, consoleURL, consoleURL+"/ocp", 1), dashboard},
		},
		"NoConsole": {
			reason: "a notice needs no link", notices: []console.Notice{until(c, "text", time.Hour)},
			want: []string{"notification text", dashboard},
		},
		"HTTP":   {reason: "the API accepts https only", url: "http://console.example.com", want: []string{dashboard}},
		"Query":  {reason: "a path cannot be appended", url: consoleURL + "/?a=b", want: []string{dashboard}},
		"NoHost": {reason: "it leads nowhere", url: "https://", want: []string{dashboard}},
		"NoURL":  {reason: "the console is not available yet", url: " ", want: []string{dashboard}},
		"Long":   {reason: "it is from outside", url: consoleURL + strings.Repeat("/a", 600), want: []string{dashboard}},
		"Everything": {
			reason: "all objects", url: consoleURL, downloads: downloads, version: "v1.0.0",
			notices: []console.Notice{until(c, "text", time.Hour)}, want: []string{link, "notification text " + page, files, dashboard},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newWorld(t, consoleURL)
			everything := newKeeper(t, c, downloads, "v0.9.0", &text{})
			for _, before := range []string{"nothing", "everything"} {
				c := newWorld(t, consoleURL)
				if before == "everything" {
					apply(t, everything, until(c, "before", time.Hour))
				}
				setURL(t, c, tc.url)
				keeper := newKeeper(t, c, tc.downloads, tc.version, &text{})
				apply(t, keeper, tc.notices...)
				if diff := cmp.Diff(tc.want, shown(t.Context(), t)); diff != "" {
					t.Errorf("%s, with %s before (-want, +got):\n%s", tc.reason, before, diff)
				}
			}
		})
	}
}

// A keeper is to apply again when the notice that is shown ends.
func TestNoticeEnds(t *testing.T) {
	c := newWorld(t, consoleURL)
	keeper := newKeeper(t, c, "", "v1.0.0", &text{})
	first, second := until(c, "first", time.Hour), until(c, "second", 2*time.Hour)
	if next := apply(t, keeper, first, second); !next.Equal(first.Until) {
		t.Errorf("the notice ends at %s, but is to be applied at %s", first.Until, next)
	}
	if next := apply(t, keeper); !next.IsZero() {
		t.Errorf("nothing ends, but is to be applied at %s", next)
	}
}

// Without the API of the console nothing is done, once it is served the objects exist, and without it again there is no error.
func TestAPIComesAndGoes(t *testing.T) {
	c := newWorld(t, consoleURL)
	definitions := clientset.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
	listed, err := definitions.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ofConsole := slices.DeleteFunc(listed.Items,
		func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Spec.Group != consolev1.GroupName })
	served := func(ctx context.Context) int {
		found, err := c.Kubernetes.Discovery().WithLegacy().ServerResourcesForGroupVersion(consolev1.GroupVersion.String())
		if err != nil || ctx.Err() != nil {
			return 0
		}
		return len(slices.DeleteFunc(found.APIResources, func(r metav1.APIResource) bool { return strings.Contains(r.Name, "/") }))
	}
	remove := func(all []apiextensionsv1.CustomResourceDefinition) {
		before := served(t.Context())
		for _, each := range all {
			if err := definitions.Delete(t.Context(), each.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		await.Until(t, "they are not served", func(ctx context.Context) bool { return served(ctx) == before-len(all) })
	}
	install := func(ctx context.Context) {
		for _, each := range ofConsole {
			each.ObjectMeta = metav1.ObjectMeta{Name: each.Name, Annotations: each.Annotations}
			if _, err := definitions.Create(ctx, &each, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
	}
	awaitServed := func() {
		await.Until(t, "they are served", func(ctx context.Context) bool {
			_, err := c.Dynamic.Resource(kinds()["ConsoleLink"]).List(ctx, metav1.ListOptions{})
			return err == nil && served(ctx) == len(ofConsole)
		})
	}
	if len(ofConsole) != 3 {
		t.Fatalf("%d definitions", len(ofConsole))
	}
	t.Cleanup(func() {
		install(context.WithoutCancel(t.Context()))
		awaitServed()
	})
	log := &text{}
	keeper := newKeeper(t, c, downloads, "v1.0.0", log)
	notice := until(c, "text", time.Hour)
	remove(ofConsole)
	apply(t, keeper, notice)
	if _, err := c.Kubernetes.CoreV1().ConfigMaps(console.Namespace).Get(t.Context(), console.Dashboard,
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without the API there is a dashboard: %v", err)
	}
	if log.String() != "" {
		t.Errorf("without the API there is nothing to log:\n%s", log)
	}
	if deleted, err := console.Uninstall(t.Context(), c.Dynamic); err != nil || len(deleted) > 0 {
		t.Errorf("uninstalled %v, %v", deleted, err)
	}
	install(t.Context())
	awaitServed()
	apply(t, keeper, notice)
	if got := shown(t.Context(), t); len(got) != 4 {
		t.Errorf("with the API there are %q", got)
	}
	remove(slices.DeleteFunc(slices.Clone(ofConsole),
		func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Spec.Names.Kind != "ConsoleLink" }))
	apply(t, keeper)
	if notification(t.Context(), t) != "" {
		t.Error("without ConsoleLinks, the notification has not gone")
	}
}

// An object of another client is not changed, and the others are applied. It is an error until it is gone.
func TestForeignObjects(t *testing.T) {
	for kind, content := range map[string]any{
		"ConsoleLink": &consolev1.ConsoleLink{Spec: consolev1.ConsoleLinkSpec{Link: consolev1.Link{
			Href: "https://example.com",
			Text: "other",
		}, Location: consolev1.HelpMenu}},
		"ConsoleNotification": &consolev1.ConsoleNotification{Spec: consolev1.ConsoleNotificationSpec{Text: "other"}},
		"ConsoleCLIDownload": &consolev1.ConsoleCLIDownload{Spec: consolev1.ConsoleCLIDownloadSpec{
			Description: "other", DisplayName: "other",
			Links: []consolev1.CLIDownloadLink{},
		}},
		"ConfigMap": &corev1.ConfigMap{Data: map[string]string{"other.json": "{}"}},
	} {
		t.Run(kind, func(t *testing.T) {
			c := newWorld(t, consoleURL)
			resources, name := object(kind)
			before := create(t, kind, name, content)
			keeper := newKeeper(t, c, downloads, "v1.0.0", &text{})
			for _, notices := range [][]console.Notice{{until(c, "text", time.Hour)}, nil} {
				if _, err := keeper.Apply(t.Context(), notices); err == nil || !strings.Contains(err.Error(), kind) ||
					!strings.Contains(err.Error(), "does not belong to the preflight") {
					t.Errorf("the error is %v", err)
				}
			}
			if deleted, err := console.Uninstall(t.Context(), c.Dynamic); err == nil || len(deleted) < 2 {
				t.Errorf("uninstalled %v, %v", deleted, err)
			}
			after, err := resources.Get(t.Context(), name, metav1.GetOptions{})
			if diff := cmp.Diff(before, after); diff != "" || err != nil {
				t.Fatalf("the object was changed: %v\n%s", err, diff)
			}
			if err := resources.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			apply(t, keeper, until(c, "text", time.Hour))
			if got := shown(t.Context(), t); len(got) != 4 {
				t.Errorf("when it is gone there are %q", got)
			}
		})
	}
}

// Two versions of the controller, in turn: each has its own content and no more, and the same content changes nothing.
func TestVersionsInTurn(t *testing.T) {
	c := newWorld(t, consoleURL)
	notice := until(c, "text", time.Hour)
	versions := map[string]string{}
	for _, version := range []string{"v1.0.0", "v1.1.0", "v1.1.0", "v1.0.0"} {
		apply(t, newKeeper(t, c, downloads, version, &text{}), notice)
		var files consolev1.ConsoleCLIDownload
		read(t.Context(), t, "ConsoleCLIDownload", &files)
		for _, each := range files.Spec.Links {
			if !strings.HasPrefix(each.Href, downloads+version+"/") {
				t.Errorf("%s links to %s", version, each.Href)
			}
		}
		for kind := range kinds() {
			resources, name := object(kind)
			found, err := resources.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if last := versions[kind]; last != "" && last != found.GetResourceVersion() && kind != "ConsoleCLIDownload" ||
				len(found.GetManagedFields()) != 1 {
				t.Errorf("%s: %s was changed, or has other managers: %v", version, kind, found.GetManagedFields())
			}
			versions[kind] = found.GetResourceVersion()
		}
	}
}

// Uninstall deletes everything, and may be repeated.
func TestUninstall(t *testing.T) {
	c := newWorld(t, consoleURL)
	apply(t, newKeeper(t, c, downloads, "v1.0.0", &text{}), until(c, "text", time.Hour))
	for _, want := range []int{4, 0} {
		if deleted, err := console.Uninstall(t.Context(), c.Dynamic); err != nil || len(deleted) != want {
			t.Errorf("uninstalled %v, %v; want %d objects", deleted, err, want)
		}
	}
	if got := shown(t.Context(), t); len(got) > 0 {
		t.Errorf("there are still %q", got)
	}
}

// The declared permissions suffice, and without one of them the rest is applied.
func TestNeeds(t *testing.T) {
	c := newWorld(t, consoleURL)
	permitted := func(t *testing.T, needs access.Needs) *cluster.Cluster {
		t.Helper()
		limited, err := cluster.Connect(user.With(t, config, needs), "test")
		if err != nil {
			t.Fatal(err)
		}
		return limited
	}
	run := func(t *testing.T, needs access.Needs) error {
		t.Helper()
		limited := permitted(t, needs)
		_, err := newKeeper(t, limited, downloads, "v1.0.0", &text{}).Apply(t.Context(), []console.Notice{until(c, "text", time.Hour)})
		if err == nil { // all but the dashboard may have to be removed
			setURL(t, c, "")
			_, err = newKeeper(t, limited, "", "v1.0.0", &text{}).Apply(t.Context(), nil)
			setURL(t, c, consoleURL)
		}
		if _, uninstallErr := console.Uninstall(t.Context(), c.Dynamic); uninstallErr != nil {
			t.Fatal(uninstallErr)
		}
		return err
	}
	needs := console.Needs()
	if err := run(t, needs); err != nil {
		t.Errorf("with the declared permissions: %v", err)
	}
	for i, without := range needs.Optional {
		t.Run("Without "+access.Describe(without), func(t *testing.T) {
			err := run(t, access.Needs{Optional: slices.Delete(slices.Clone(needs.Optional), i, i+1)})
			if !apierrors.IsForbidden(err) && (err == nil || !strings.Contains(err.Error(), "forbidden")) {
				t.Errorf("want a Forbidden error, got %v", err)
			}
		})
	}
	apply(t, newKeeper(t, c, downloads, "v1.0.0", &text{}), until(c, "text", time.Hour))
	if deleted, err := console.Uninstall(t.Context(), permitted(t, console.UninstallNeeds()).Dynamic); err != nil || len(deleted) != 4 {
		t.Errorf("uninstalled %v, %v", deleted, err)
	}
}

// The loop: nothing is done before the first notices, a change is applied at once, a notice goes when it ends, and what
// was deleted comes back. A foreign object is logged once.
func TestStart(t *testing.T) {
	c := newWorld(t, consoleURL)
	resources, name := object("ConsoleLink")
	foreign := &consolev1.ConsoleLink{Spec: consolev1.ConsoleLinkSpec{
		Link:     consolev1.Link{Href: "https://example.com", Text: "other"},
		Location: consolev1.HelpMenu,
	}}
	create(t, "ConsoleLink", name, foreign)
	log := &text{}
	keeper := newKeeper(t, c, "", "v1.0.0", log)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- keeper.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	shows := func(want string) {
		t.Helper()
		await.Until(t, "the notification is "+want, func(ctx context.Context) bool { return notification(ctx, t) == want })
	}
	keeper.Set(until(c, "first", time.Hour))
	shows("first")
	keeper.Set(until(c, "short", 3*time.Second), until(c, "second", time.Hour))
	shows("short")
	shows("second") // by the end of the one before
	banners, bannerName := object("ConsoleNotification")
	if err := banners.Delete(t.Context(), bannerName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	keeper.Set(until(c, "second", 2*time.Hour)) // the text is the same, but another one went
	shows("second")
	keeper.Set()
	shows("")
	if got := strings.Count(log.String(), "does not belong to the preflight"); got != 1 {
		t.Errorf("the foreign object was logged %d times:\n%s", got, log)
	}
	if err := resources.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the link exists, by a retry", func(ctx context.Context) bool { return slices.Contains(shown(ctx, t), "link "+page) })
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func target(version string, by record.Requester) runplan.Target {
	return runplan.Target{Release: update.Release{Version: version, Image: "quay.io/x@sha256:" + strings.Repeat("1", 64)}, Requester: by}
}

// decided is a report of a run that ended at noon, with a verdict that is valid for an hour.
func decided(decision verdict.Decision, changes ...func(*report.Report)) *report.Report {
	made := report.Report{
		Run:     report.Run{Phase: report.PhaseComplete, CompletionTime: noon.Format(time.RFC3339)},
		Verdict: verdict.Verdict{Decision: decision, Blocking: []string{"A", "B"}, ValidUntil: noon.Add(time.Hour).Format(time.RFC3339)},
	}
	for _, change := range changes {
		change(&made)
	}
	return &made
}

// judged is the judgement of an update that was last made at noon.
func judged(decision afterupdate.Decision) afterupdate.Report {
	return afterupdate.Report{
		Update: afterupdate.Update{From: "4.18.3", To: "4.18.9"}, Decision: decision, Counts: afterupdate.Counts{Regressions: 1},
		Samples: afterupdate.Samples{Last: noon.Format(time.RFC3339)},
	}
}

func TestNotices(t *testing.T) {
	t.Parallel()
	selected, offered := target("4.19.1", record.BySelection), target("4.19.1", record.Ahead)
	blocked := []string{"The preflight blocks the update to 4.19.1: 2 findings. until 13:00"}
	regressed := "The cluster has regressed since the update to 4.18.9: 1 problem. until 12:00"
	for name, tc := range map[string]struct {
		reason  string
		targets []runplan.Target
		stored  *report.Report
		after   afterupdate.Report
		want    []string
	}{
		"Nothing": {reason: "there is no ClusterVersion, or no update"},
		"Blocked": {
			reason: "the selected update waits for a remedy", targets: []runplan.Target{selected}, stored: decided(verdict.Blocked),
			want: blocked,
		},
		"BlockedMany": {
			reason: "offered ones follow the selected one", targets: []runplan.Target{selected, target("4.20.0", record.Ahead)},
			stored: decided(verdict.Blocked), want: blocked,
		},
		"Offered": {reason: "no administrator has requested it", targets: []runplan.Target{offered}, stored: decided(verdict.Blocked)},
		"Scheduled": {
			reason:  "one that is scheduled comes first, and is not selected",
			targets: []runplan.Target{offered, target("4.20.0", record.Ahead)}, stored: decided(verdict.Blocked),
		},
		"Ready": {reason: "the update starts", targets: []runplan.Target{selected}, stored: decided(verdict.Ready)},
		"ReadyForced": {
			reason: "a forced run has no Blocked", targets: []runplan.Target{selected},
			stored: decided(verdict.Ready, func(r *report.Report) { r.Verdict.Forced = true }),
		},
		"Undecided": {
			reason: "it is the usual state, and a notice blocks nothing", targets: []runplan.Target{selected},
			stored: decided(verdict.Undecided),
		},
		"NoVerdict": {reason: "the run has not ended", targets: []runplan.Target{selected}},
		"Ended": {
			reason: "the cluster has changed: it may be remedied", targets: []runplan.Target{selected},
			stored: decided(verdict.Blocked, func(r *report.Report) {
				r.Standing = &report.Standing{Ended: []string{"the cluster has changed"}}
			}),
		},
		"NoTimes": {
			reason: "its end is unknown", targets: []runplan.Target{selected},
			stored: decided(verdict.Blocked, func(r *report.Report) { r.Run.CompletionTime, r.Verdict.ValidUntil = "", "" }),
		},
		"ByImage": {
			reason: "the release states its version", targets: []runplan.Target{target("", record.BySelection)},
			stored: decided(verdict.Blocked, func(r *report.Report) { r.Target.Version = "4.19.1" }), want: blocked,
		},
		"ByDigest": {
			reason: "its version is unknown", targets: []runplan.Target{target("", record.BySelection)}, stored: decided(verdict.Blocked),
			want: []string{"The preflight blocks the update to sha256:" + strings.Repeat("1", 64) + ": 2 findings. until 13:00"},
		},
		"Regressed":      {reason: "the cluster needs a remedy", after: judged(afterupdate.Regressed), want: []string{regressed}},
		"RolledBack":     {reason: "an administrator has decided", after: judged(afterupdate.RolledBack)},
		"Good":           {reason: "there is nothing to do", after: judged(afterupdate.Good)},
		"AfterUndecided": {reason: "what is unknown is no regression", after: judged(afterupdate.Undecided)},
		"NextUpdate":     {reason: "the next update has begun", after: judged(afterupdate.Settling)},
		"NotJudged":      {reason: "it is unknown for how long", after: afterupdate.Report{Decision: afterupdate.Regressed}},
		"Both": {
			reason: "the newest request comes first", targets: []runplan.Target{selected}, stored: decided(verdict.Blocked),
			after: judged(afterupdate.Regressed), want: append(blocked, regressed),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdicts := runplan.Verdicts{}
			if tc.stored != nil {
				verdicts[tc.targets[0].Covered()] = *tc.stored
			}
			var got []string
			for _, notice := range console.Notices(tc.targets, verdicts, tc.after) {
				got = append(got, notice.Text+" until "+notice.Until.Format("15:04"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// hostile are versions that a ClusterVersion or a release may have.
func hostile() map[string]string {
	return map[string]string{
		"Control": "4.19\x1b[31m.1\r\n\x00\x07", "Long": strings.Repeat("4.19", 2500),
		"HTML": `<script>alert(1)</script><img src=x onerror=alert(1)>`,
		"Bidi": "4.19.\u202e1\u2066\u200b", "Encoding": "4.19.\xff\xfe1", "Wide": strings.Repeat("\U0001f600", 2500), "Format": "%s%d%!",
		"Markdown": "[x](javascript:alert(1))",
	}
}

// The API server accepts the text of every version, as one printable line of limited size.
func TestHostileVersions(t *testing.T) {
	c := newWorld(t, consoleURL)
	keeper := newKeeper(t, c, "", "v1.0.0", &text{})
	for name, version := range hostile() {
		after := judged(afterupdate.Regressed)
		after.Update.To = version
		made := target(version, record.BySelection)
		for _, notice := range console.Notices([]runplan.Target{made}, runplan.Verdicts{made.Covered(): *decided(verdict.Blocked)}, after) {
			notice.Until = c.Now().Add(time.Hour)
			if _, err := keeper.Apply(t.Context(), []console.Notice{notice}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := notification(t.Context(), t)
			isControl := func(r rune) bool { return !unicode.IsPrint(r) }
			if got != notice.Text || len(got) > 200 || !utf8.ValidString(got) || strings.ContainsFunc(got, isControl) ||
				!strings.HasPrefix(got, "The ") {
				t.Errorf("%s: the text is %q, want %q", name, got, notice.Text)
			}
		}
	}
}
