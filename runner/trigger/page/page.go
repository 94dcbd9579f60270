// Package page answers: how does a browser show the verdict and the judgement of this cluster?
//
// [New] is the handler of one page, which writes nothing to the cluster, and [Server] is a server with limits for it.
// The caller adds TLS. A request needs a token of the cluster, as Bearer token or as the password of HTTP Basic
// authentication, whose user name does not matter: a browser asks for it. The API server reviews the token and whether
// its user has [Permission]; if the API server does not answer, nothing is shown.
package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/afterview"
	"github.com/openshift/update-preflight/collector/document/html"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

const (
	// maxRequests bounds the requests that are answered at a time.
	maxRequests = 8
	// reviewTimeout bounds the reviews of a request, and readTimeout the reading of a page.
	reviewTimeout, readTimeout = 10 * time.Second, 30 * time.Second
)

// Handler serves the page.
type Handler struct {
	records records
	gate    gate
	logger  *slog.Logger
	places  chan struct{}
}

// answer is a page with its status.
type answer struct {
	status int
	body   []byte
}

// New returns the handler of the page of a cluster, which shows the verdicts that count for the requested coverage. It
// needs the permissions in [Needs], and reads the same objects as the controller.
func New(c *cluster.Cluster, asked selection.Asked, logger *slog.Logger) *Handler {
	return &Handler{
		records: records{cluster: c, store: recordstore.New(c.Kubernetes), asked: asked},
		gate:    gate{client: c.Kubernetes}, logger: logger, places: make(chan struct{}, maxRequests),
	}
}

// Server is a server of the handler whose sizes and times are bounded. It has neither an address nor TLS.
func Server(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
		WriteTimeout:                 2 * (reviewTimeout + readTimeout),
		MaxHeaderBytes:               12 << 10, // net/http reads 4 KiB more
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // what clients do wrong
	}
}

// ServeHTTP answers a GET or HEAD of "/".
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Content-Security-Policy": html.Policy() + "; frame-ancestors 'none'",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		// Strict-Transport-Security concerns all ports of a host, such as localhost: the Route has it.
	} {
		w.Header().Set(name, value)
	}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read-only", http.StatusMethodNotAllowed)
		return
	case r.URL.Path != "/":
		http.Error(w, "there is only one page: /", http.StatusNotFound)
		return
	}
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
		return
	}
	shown := h.answer(r)
	if shown.status == http.StatusUnauthorized {
		w.Header()["Www-Authenticate"] = []string{`Basic realm="token of oc whoami -t as the password", charset="UTF-8"`, "Bearer"}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(shown.status)
	_, _ = w.Write(shown.body) // the client is gone
}

// answer is the page for those who may see it, or else why it is not shown.
func (h *Handler) answer(r *http.Request) answer {
	token := tokenOf(r)
	if token == "" {
		return unauthorized("The request has no token.")
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	decided, err := h.gate.decide(ctx, token)
	switch {
	case err != nil:
		h.logger.Warn("the user of the page could not be reviewed", "error", err)
		return written(http.StatusServiceUnavailable, notShown("The API server could not verify your identity and "+
			"permissions. Try again."))
	case decided.user == "":
		return unauthorized("The API server does not accept the token.")
	case !decided.allowed:
		return forbidden(decided.user)
	}
	return h.page(r.Context())
}

// page is the page as it is now.
func (h *Handler) page(ctx context.Context) answer {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	made, err := h.records.document(ctx)
	if err != nil {
		h.logger.Warn("the page could not be read", "error", err)
		return written(http.StatusServiceUnavailable, made)
	}
	return written(http.StatusOK, made)
}

func written(status int, d document.Document) answer {
	var body bytes.Buffer
	if err := html.Write(&body, d.Complete("", view())); err != nil { // a buffer has no errors
		return answer{status: http.StatusInternalServerError}
	}
	return answer{status: status, body: body.Bytes()}
}

// notShown is a page that states why there is no other.
func notShown(cause string, blocks ...document.Block) document.Document {
	return document.Document{Title: title, Blocks: append([]document.Block{document.Paragraph{Text: cause}}, blocks...)}
}

func unauthorized(cause string) answer {
	return written(http.StatusUnauthorized, notShown(cause,
		command("Reload the page, and enter any user name. The password is your token, which this command prints:",
			finding.OnThisMachine("oc whoami -t"))...))
}

func forbidden(user string) answer {
	return written(http.StatusForbidden, notShown("You are "+user+", and lack the permission to "+described()+".",
		command("An administrator of the cluster grants it:", finding.Change("oc adm policy add-cluster-role-to-user %s %s", Role, user))...))
}

// Role is the ClusterRole of the manifests with [Permission].
const Role = "update-preflight-reader"

// Permission is the request that a user must be allowed to make to see the page.
func Permission() access.Request {
	return access.Request{Verb: "get", Group: v1alpha1.Group, Version: "*", Resource: v1alpha1.Resource}
}

func described() string { return access.Describe(Permission()) }

// Needs are the permissions to review users, which the controller needs in addition to its own if it serves the page.
func Needs() access.Needs {
	return access.Needs{Required: []access.Request{
		{Verb: "create", Group: authenticationv1.GroupName, Resource: "tokenreviews"},
		{Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"},
	}}
}

// tokenOf is the token of a request; empty for none, or several.
func tokenOf(r *http.Request) string {
	stated := r.Header.Values("Authorization")
	if len(stated) != 1 {
		return ""
	}
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(stated[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// gate asks the API server who may see the page. k8s.io/apiserver's delegating authenticator does not distinguish a token
// that is rejected from a review that failed.
type gate struct {
	client kubernetes.Interface
}

// decision is who has a token, and whether that user may see the page. The user is empty for a token that is rejected.
type decision struct {
	user    string
	allowed bool
}

// decide asks for a decision; an error is none.
func (g gate) decide(ctx context.Context, token string) (decision, error) {
	// client-go logs the content of requests at high verbosity, and this one has the token.
	reviewed, err := g.client.AuthenticationV1().TokenReviews().Create(logr.NewContext(ctx, logr.Discard()),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return decision{}, fmt.Errorf("could not review a token: %w", err)
	}
	user := reviewed.Status.User
	if !reviewed.Status.Authenticated || user.Username == "" {
		return decision{}, nil
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	permission := Permission()
	allowed, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &permission, User: user.Username, UID: user.UID, Groups: user.Groups,
			Extra: extra,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return decision{}, fmt.Errorf("could not review the permission of %q: %w", user.Username, err)
	}
	return decision{user: user.Username, allowed: allowed.Status.Allowed && !allowed.Status.Denied}, nil
}

const title = "Update preflight"

// records read the runs and judgements that the page shows.
type records struct {
	cluster *cluster.Cluster
	store   *recordstore.Store
	asked   selection.Asked
}

// view shows as much as "-o html" does.
func view() document.View { return document.View{Full: true} }

// document is the run in progress, the verdict on the selected target, or else the newest one, and the judgement of the
// last update: what is of that update comes last, unless it was made after the verdict. Of what cannot be read the page
// states so, and the error has it.
func (r records) document(ctx context.Context) (document.Document, error) {
	now := r.cluster.Now()
	page := document.Document{
		Title: title, Time: words.Time(now),
		Source: "Reload the page for newer records. oc preflight history lists the verdicts on other targets.",
	}
	present := snapshot.Of(r.cluster)
	version, err := present.ClusterVersion(ctx)
	if err == nil {
		page.Cluster = string(version.Spec.ClusterID)
		var listed []record.Record
		if listed, err = r.store.List(ctx); err == nil {
			question := standing.Question{Present: standing.Present{Cluster: present, Now: now}, Asked: r.asked, Runs: listed}
			page.Blocks, err = r.parts(ctx, question, version)
			return page, err
		}
	}
	page.Blocks = []document.Block{unreadable(err)}
	return page, err
}

func unreadable(err error) document.Block {
	return unclear("Unreadable", "The records in this cluster could not be read: "+words.External(err.Error()))
}

func unclear(word, meaning string) document.Block {
	return document.Verdict{Mark: document.Mark{Level: document.Unclear, Word: word}, Meaning: meaning}
}

func (r records) parts(ctx context.Context, question standing.Question, version *configv1.ClusterVersion) ([]document.Block, error) {
	judged, err := judgement.OfRuns(ctx, r.cluster.Kubernetes, version)
	if err != nil {
		return []document.Block{unreadable(err)}, err
	}
	blocks, err := r.running(ctx, question)
	verdict, updated, failed := r.verdict(ctx, question, version, judged)
	after := r.after(ctx, version)
	if updated {
		verdict, after = after, verdict
	}
	return slices.Concat(blocks, verdict, after), errors.Join(err, failed)
}

// running is the newest run in progress.
func (r records) running(ctx context.Context, question standing.Question) ([]document.Block, error) {
	at := slices.IndexFunc(question.Runs, func(run record.Record) bool { return run.Phase == record.Running && !run.Provisional })
	if at < 0 {
		return nil, nil
	}
	stored, err := r.report(ctx, question, question.Runs[at].ID, judgement.Runs{})
	if err != nil {
		return []document.Block{unreadable(err)}, err
	}
	if stored.Run.Phase != report.PhaseRunning {
		return nil, nil // it has ended since it was listed
	}
	return append([]document.Block{section(stored, "In progress: ")},
		command("Follow the run:", finding.Read("oc preflight attach %s", stored.Run.ID))...), nil
}

// verdict is the verdict that counts. updated is true where the update was made since.
func (r records) verdict(ctx context.Context, question standing.Question, version *configv1.ClusterVersion,
	judged judgement.Runs,
) (blocks []document.Block, updated bool, err error) {
	target, selected := runplan.Selected(version)
	newest := slices.IndexFunc(question.Runs, func(run record.Record) bool { return run.Phase == record.Complete && !run.Provisional })
	if !selected && newest >= 0 {
		target.Release = question.Runs[newest].Target
	}
	counts, found := question.Newest(target.Digest())
	if !found {
		return none(target, question.Runs), false, nil
	}
	stored, err := r.report(ctx, question, counts.ID, judged)
	if err != nil {
		return []document.Block{unreadable(err)}, false, err
	}
	now := command("These are the findings of the run. To evaluate gates, risks and health again:",
		finding.Read("oc preflight status %s", counts.ID))
	return append([]document.Block{section(stored, "")}, now...), stored.AfterUpdate != nil, nil
}

// none states that there is no verdict on a target, which is zero where none is selected, and how to get one.
func none(target runplan.Target, runs []record.Record) []document.Block {
	meaning := "This cluster has no recorded complete preflight."
	if target.Image != "" {
		meaning = fmt.Sprintf("The update to %s is selected, but has no recorded complete preflight.", cmp.Or(target.Version, target.Image))
	}
	blocks := []document.Block{unclear("No verdict", meaning)}
	if slices.ContainsFunc(runs, func(run record.Record) bool {
		return run.Phase == record.Running && run.Target.Digest() == target.Digest()
	}) {
		return blocks
	}
	return append(blocks, command("Run one:", again(report.Target{Version: target.Version, Image: target.Image}))...)
}

// again is the command that runs the preflight of a target.
func again(target report.Target) finding.Action {
	switch {
	case target.Version != "":
		return finding.Read("oc preflight run --to %s", target.Version)
	case target.Image != "":
		return finding.Read("oc preflight run --to-image %s", target.Image)
	}
	return finding.Read("oc preflight run --to-latest")
}

// command is a command after a lead; nothing where there is none that may be typed.
func command(lead string, action finding.Action) []document.Block {
	if action.Command == "" {
		return nil
	}
	return []document.Block{document.Command{Lead: lead, Text: action.Command}}
}

// report evaluates a recorded run as of now, and adds the commands that follow from it.
func (r records) report(ctx context.Context, question standing.Question, id string, judged judgement.Runs) (reportview.Report, error) {
	recorded, err := r.store.Get(ctx, id)
	if err != nil {
		return reportview.Report{}, err
	}
	stored, err := question.Of(ctx, recorded)
	if err != nil {
		return reportview.Report{}, err
	}
	shown := reportview.Report{Report: stored}
	if stored.Run.Phase != report.PhaseRunning {
		if shown.AfterUpdate = judged.After(recorded); shown.AfterUpdate != nil {
			shown.After = finding.Change("oc preflight after %s", id).Command
		}
	}
	shown.Actions = slices.DeleteFunc(slices.Clone(stored.Actions), func(a finding.Action) bool {
		return a.Command == "" || a.Type == finding.ActionRetry || a.Type == finding.ActionStart && !shown.Permits()
	})
	retry := again(stored.Target)
	retry.Type = finding.ActionRetry
	if retry.Command != "" && stored.Run.Phase != report.PhaseRunning &&
		(!stored.Holds() || slices.ContainsFunc(stored.Findings, finding.Finding.Open)) {
		shown.Actions = append(shown.Actions, retry)
	}
	return shown, nil
}

// after is the judgement of the last update; nothing where none is stored.
func (r records) after(ctx context.Context, version *configv1.ClusterVersion) []document.Block {
	made, found := judgement.Last(ctx, r.cluster, version)
	if !found {
		return nil
	}
	shown := section(afterview.Report{Report: made}, "")
	return append([]document.Block{shown}, command("Evaluate the update with the current state:", finding.Change("oc preflight after"))...)
}

// section is a document as a part of the page.
func section(of document.Source, lead string) document.Section {
	made := of.Document(view())
	return document.Section{Title: lead + strings.TrimPrefix(made.Title, title+": "), Blocks: made.Complete("", view()).Blocks}
}
