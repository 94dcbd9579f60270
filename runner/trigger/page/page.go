// Package page answers: what does a browser see of the verdict and the judgement of this cluster?
//
// [New] is the handler of one page, which writes nothing to the cluster, and [Server] is a server with limits for it. The
// caller adds TLS. A request needs a token of the cluster, as Bearer token or as the password of HTTP Basic
// authentication, whose user name does not matter: a browser asks for it. The API server reviews the token and whether its
// user may do [Permission]; where it cannot be asked, nothing is shown.
package page

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/html"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/selection"
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

// New makes the handler of the page of a cluster, whose verdicts are those that count for what is asked. It requests what
// [Needs] has, and reads what the controller reads.
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
		http.Error(w, "the page is only read", http.StatusMethodNotAllowed)
		return
	case r.URL.Path != "/":
		http.Error(w, "there is one page: /", http.StatusNotFound)
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
		return written(http.StatusServiceUnavailable, notShown("The API server could not be asked who you are and what you may do. Try again."))
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
		command("Reload the page, and enter any user name. The password is your token, which this prints:", finding.OnThisMachine("oc whoami -t"))...))
}

func forbidden(user string) answer {
	return written(http.StatusForbidden, notShown("You are "+user+", and lack the permission to "+described()+".",
		command("An administrator of the cluster grants it:", finding.Change("oc adm policy add-cluster-role-to-user %s %s", Role, user))...))
}
