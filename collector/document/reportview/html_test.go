package reportview_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/golden"
)

// Tests of: collector/document/html, collector/document/picture

// timed is the blocked report with the times of its Jobs.
func timed() report.Report {
	doc := blocked()
	for i := range doc.Findings {
		if doc.Findings[i].Source != finding.SourceJob {
			continue
		}
		doc.Findings[i].Job = &finding.Job{
			Namespace: "openshift-etcd", Name: fmt.Sprintf("check-%d", i), Attempts: 1,
			StartTime: fmt.Sprintf("2026-11-21T08:00:0%dZ", i), CompletionTime: fmt.Sprintf("2026-11-21T08:00:0%dZ", min(9, 2*i+1)),
		}
		switch doc.Findings[i].Name {
		case "Etcd.Space":
			doc.Findings[i].Job.Waits = []finding.Wait{
				{Reason: "Queued", StartTime: "2026-11-21T07:59:55Z", EndTime: "2026-11-21T07:59:58Z"},
				{
					Reason: "Starting", Message: "its container is being created on node a", StartTime: "2026-11-21T07:59:58Z",
					EndTime: fmt.Sprintf("2026-11-21T08:00:0%dZ", i),
				},
			}
		case "Etcd.Quorum":
			doc.Findings[i].Job.CompletionTime = ""
			doc.Findings[i].Job.Waits = []finding.Wait{
				{
					Reason: "ImagePull", Message: `image "r@sha256:1" cannot be pulled (ImagePullBackOff): 503`, StartTime: "2026-11-21T07:59:56Z",
					EndTime: "2026-11-21T08:00:09Z",
				},
			}
		}
	}
	doc.Findings[0].Evidence = map[string]string{"bits": "1024", "notAfter": "2027-01-01T00:00:00Z"}
	doc.Actions = []finding.Action{finding.Read("oc preflight run --to 4.19.0 --accept ClusterIngressOperator.DefaultCertificate,Etcd.Quorum")}
	return doc
}

func TestHTMLGolden(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]any{
		"timed": timed(), "ready": ready(), "running": running(), "detached": detached(), "outdated": outdated(), "targets": fleet(),
		"targets-none": none(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := encoded(t, "html", doc)
			wellFormed(t, got)
			golden.Compare(t, "testdata/"+name+".html", got)
		})
	}
}

// TestHTMLIsOnlyText writes hostile texts in every field of every document: the page has
// the same elements as one with plain text.
func TestHTMLIsOnlyText(t *testing.T) {
	t.Parallel()
	texts := append(hostile(), `"><script>alert(1)</script>`, `' onload='alert(1)`, "javascript:alert(1)", "</title><script>", "</style>",
		"<!--", "]]>", "{{.}}", "&#60;b&#62;", "</svg><script>")
	for name, page := range hostileDocuments() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := wellFormed(t, encoded(t, "html", page("text")))
			for _, text := range texts {
				got := wellFormed(t, encoded(t, "html", page(text)))
				if strings.Contains(strings.TrimSpace(text), "\n") {
					got = withoutBreaks(got) // lines are kept
				}
				if got != plain && got != withoutBreaks(plain) {
					t.Errorf("%q changes the elements:\n%s\nwant\n%s", text, got, plain)
				}
			}
		})
	}
}

// hostileDocuments are all documents, with a text in every field.
func hostileDocuments() map[string]func(string) any {
	return map[string]func(string) any{
		"Report": func(text string) any { return hostileDocument(text) }, "Path": func(text string) any { return hostilePath(text) },
		"Targets": func(text string) any { return hostileTargets(text) },
		"Plan":    func(text string) any { return hostilePlan(text) }, "NoPath": func(text string) any { return hostileNoPath(text) },
	}
}

func withoutBreaks(elements string) string { return strings.ReplaceAll(elements, " <br>", "") }

// hostileDocument has a text in every field of external origin.
func hostileDocument(text string) report.Report {
	doc := timed()
	f := finding.Fail(finding.ReportedReason("Reason"), "%s", text).Remedy("%s",
		text).Do(finding.Script(text)).Documented(text).Named(text).From(finding.SourceJob).
		Observed(map[string]string{text: text}).About(preflight.Object{APIVersion: text, Kind: text, Namespace: text, Name: text})
	f.Job = &finding.Job{Namespace: text, Name: text, Node: text, StartTime: "2026-11-21T08:00:00Z", CompletionTime: "2026-11-21T08:00:01Z"}
	f.Job.Waits = []finding.Wait{
		{Reason: text, Message: text, StartTime: "2026-11-21T08:00:00Z", EndTime: "2026-11-21T08:00:01Z"},
		{StartTime: text, EndTime: text},
	}
	f.BlockedTargets = []string{text}
	accepted := finding.Fail(finding.ReportedReason("Other"), "%s", text).Named("Accepted").From(finding.SourceJob)
	passed := finding.Pass(gap.Proven("a test"), finding.ReportedReason("Passed"), "%s", text).Named(text + "2").From(finding.SourceJob)
	expected := verdict.Expectation{Checks: 4, Reported: 3, Missing: []string{text}}
	doc.Verdict, doc.Findings = verdict.Fold([]finding.Finding{f, accepted, passed}, expected,
		verdict.Policy{Accepted: map[string]string{"Accepted": text}})
	doc.Expected = expected
	doc.Cluster = report.Cluster{ID: text, Version: text, Image: text, Kubernetes: text}
	doc.Target = report.Target{Version: text, Image: text, UpdateKind: text, Verified: true, Signers: []string{text}}
	doc.CVO.Reason, doc.CVO.Message, doc.Run.ID, doc.Run.ToolVersion = text, text, text, text
	doc.Switches = []report.Switch{{Name: text, Mode: text, Limit: text, WithoutController: text}}
	doc.Removal = &report.Removal{Left: []report.Object{{Object: preflight.Object{Kind: text, Namespace: text, Name: text}}}}
	doc.AskedAgain = []report.AskedAgain{{Name: text, Reason: text}}
	doc.Verdict.ValidUntil = text
	return doc
}

func hostilePath(text string) report.Path {
	doc := hostileDocument(text)
	return report.NewPath([]string{text, text, text}, []report.Report{doc})
}

func hostileTargets(text string) report.Targets {
	doc := listing(nil, map[string][]finding.Finding{text: hostileDocument(text).Findings, "4.18.1": {risk(text)}}, text, "4.18.1")
	doc.Cluster.Version, doc.Channel, doc.ToolVersion, doc.Time = text, text, text, text
	return doc
}

func hostilePlan(text string) updateplan.Plan {
	findings := hostileDocument(text).Findings
	risks := []updateplan.Risk{
		{
			Name: text, Message: text, URL: text, Assessment: updateplan.Assessment{Applies: updateplan.Unknown, Reason: text, Detail: text},
			Open: true,
		},
		{Name: text, Message: text, URL: text, Assessment: updateplan.Assessment{Applies: updateplan.True}, Accepted: text + "a"},
	}
	hop := updateplan.Update{
		From: text, To: text, Kind: text, Image: text + "i", URL: text + "u", Channel: text, Channels: []string{text + "c"},
		Unpause: []string{text + "p"},
		Risks:   risks, Findings: findings, ControlPlane: report.Range{Low: 60, Expected: 75, High: 120},
	}
	return updateplan.Plan{
		ToolVersion: text, Time: text + "t", Decision: updateplan.OpenRisks, Cluster: text + "c", From: text, To: text, Architecture: text + "a",
		Graphs:       []string{text + "g"},
		Updates:      []updateplan.Update{hop, hop, hop, hop},
		Alternatives: []updateplan.Alternative{{Name: text, Versions: []string{text, text, text}, Updates: 2, OpenRisks: 1}},
		Pools: []updateplan.Pool{{
			Name: text, Nodes: 3, Parallel: 1, Paused: true, Unpause: []string{text}, Reboots: 1,
			RebootsUnpaused: 2,
		}},
		Duration: report.Duration{
			ControlPlane: report.Range{Low: 60, Expected: 75, High: 120}, Total: report.Range{Low: -1, Expected: 1 << 62, High: 1 << 62},
			Basis: []string{text + "b"}, ProlongedBy: []string{text},
		},
		Missing: []string{text}, Notices: []string{text},
		Comparison: &updateplan.Comparison{Time: text, Changes: []updateplan.Change{{Reason: updateplan.ChangeReason(text), Message: text}}},
	}
}

func hostileNoPath(text string) updateplan.Plan {
	return updateplan.Plan{Decision: updateplan.NoPath, From: text, To: text, NoPath: &updateplan.NoPathCause{Message: text, Remedy: text}}
}

// FuzzHTML writes any text in every field: the page is well formed, and has no script,
// external link or request.
func FuzzHTML(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, doc := range []any{hostileDocument(text), hostilePath(text), hostileTargets(text), hostilePlan(text), hostileNoPath(text)} {
			wellFormed(t, encoded(t, "html", doc))
		}
	})
}

// wellFormed parses a page, fails the test for forbidden content, and returns its elements.
func wellFormed(t *testing.T, page []byte) string {
	t.Helper()
	checkNesting(t, page)
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	checked := &pageCheck{t: t, ids: map[string]bool{}}
	for node := range root.Descendants() {
		checked.node(node)
	}
	for _, link := range checked.links {
		if !checked.ids[link] {
			t.Errorf("a link leads to #%s, which is missing", link)
		}
	}
	if checked.headings[0] != 1 || checked.count("h1") != 1 || checked.count("main") != 1 || checked.count("title") < 1 {
		t.Errorf("want exactly one h1, before other headings, one main and a title; headings %v", checked.headings)
	}
	return strings.Join(checked.elements, " ")
}

// pageCheck collects the elements of a page.
type pageCheck struct {
	t        *testing.T
	elements []string
	headings []int
	links    []string
	ids      map[string]bool
}

func (c *pageCheck) count(element string) int {
	return strings.Count(" "+strings.Join(c.elements, " ")+" ", " <"+element+"> ")
}

func (c *pageCheck) node(node *html.Node) {
	switch node.Type {
	case html.CommentNode:
		c.t.Errorf("forbidden comment %q", node.Data)
	case html.ElementNode:
		c.elements = append(c.elements, "<"+node.Data+">")
		c.element(node)
		for _, attribute := range node.Attr {
			c.attribute(node.Data, attribute)
		}
	case html.TextNode, html.ErrorNode, html.DocumentNode, html.DoctypeNode, html.RawNode:
	}
}

// element checks the rules for one element.
func (c *pageCheck) element(node *html.Node) {
	switch node.Data {
	case "script", "img", "iframe", "object", "embed", "link", "base", "form", "input", "use", "image", "foreignObject", "animate", "audio",
		"video":
		c.t.Errorf("forbidden element %s", node.Data)
	case "th":
		if value(node, "scope") == "" {
			c.t.Error("a table heading without a scope")
		}
	case "html":
		if value(node, "lang") != "en" {
			c.t.Error("the page has no language")
		}
	case "style":
		hash := sha256.Sum256([]byte(node.FirstChild.Data))
		policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'"
		if got := value(node.Parent.FirstChild.NextSibling.NextSibling.NextSibling, "content"); got != policy {
			c.t.Errorf("the policy is %q, want that of the style sheet: %q", got, policy)
		}
	case "h1", "h2", "h3", "h4", "h5", "h6":
		level := int(node.Data[1] - '0')
		if len(c.headings) > 0 && level > c.headings[len(c.headings)-1]+1 {
			c.t.Errorf("heading %d follows heading %d", level, c.headings[len(c.headings)-1])
		}
		c.headings = append(c.headings, level)
	}
}

// attribute checks one attribute.
func (c *pageCheck) attribute(element string, attribute html.Attribute) {
	key := strings.ToLower(attribute.Key)
	switch {
	case strings.HasPrefix(key, "on"), key == "style", key == "src", key == "srcset", key == "action", key == "xlink:href",
		key == "formaction":
		c.t.Errorf("<%s %s=%q>", element, key, attribute.Val)
	case key == "href":
		if !strings.HasPrefix(attribute.Val, "#") {
			c.t.Errorf("an external link: %q", attribute.Val)
		}
		c.links = append(c.links, strings.TrimPrefix(attribute.Val, "#"))
	case key == "id":
		if c.ids[attribute.Val] {
			c.t.Errorf("duplicate ID %q", attribute.Val)
		}
		c.ids[attribute.Val] = true
	case strings.ContainsAny(attribute.Val, "<>") && key != "aria-label":
		c.t.Errorf("<%s %s=%q>", element, key, attribute.Val)
	}
}

func value(node *html.Node, key string) string {
	for _, attribute := range node.Attr {
		if attribute.Key == key {
			return attribute.Val
		}
	}
	return ""
}

// checkNesting fails for a page whose tags are not closed in order: a parser would repair
// them.
func checkNesting(t *testing.T, page []byte) {
	t.Helper()
	void := map[string]bool{"meta": true, "br": true}
	var open []string
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		name, _ := tokens.TagName()
		switch {
		case kind == html.StartTagToken && !void[string(name)]:
			open = append(open, string(name))
		case kind == html.EndTagToken && (len(open) == 0 || open[len(open)-1] != string(name)):
			t.Fatalf("</%s> does not close the last of %v", name, open)
		case kind == html.EndTagToken:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("not closed: %v", open)
	}
}

func TestHTMLIsBounded(t *testing.T) {
	t.Parallel()
	doc := blocked()
	var many []finding.Finding
	for i := range 3000 {
		f := finding.Fail(finding.ReportedReason("Reason"), "%s",
			strings.Repeat("<&>'\" ", 500)).Named(fmt.Sprintf("Check%04d", i)).From(finding.SourceJob)
		f.Job = &finding.Job{Namespace: "n", Name: f.Name, StartTime: "2026-11-21T08:00:00Z", CompletionTime: "2026-11-21T09:00:00Z"}
		many = append(many, f)
	}
	doc.Verdict, doc.Findings = verdict.Fold(many, verdict.Expectation{Checks: 3000, Reported: 3000}, verdict.Policy{})
	out := encoded(t, "html", doc)
	wellFormed(t, out)
	if len(out) > 8<<20 {
		t.Errorf("the page has %d bytes", len(out))
	}
	for _, want := range []string{
		"more findings are omitted here because the page is bounded", " more, below.", "more rows are omitted here",
		"Left out of the picture: ",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the page does not state %q", want)
		}
	}
}
