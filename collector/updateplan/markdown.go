package updateplan

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	gfm "github.com/openshift/update-preflight/collector/document/markdown"
	page "github.com/openshift/update-preflight/collector/document/text"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxRisks bounds the names of the open risks of an alternative.
const maxRisks = 20

// WriteMarkdown writes the plan for change tickets and pull requests: its decision, the
// drawing of WriteText, tables, then each update. Text of the plan is data: it makes no
// links, mentions or HTML.
func (p Plan) WriteMarkdown(w io.Writer) error {
	var m gfm.Document
	decision, rest, _ := strings.Cut(p.headline(), ": ")
	m.Paragraph("**" + gfm.Text(decision) + "**: " + gfm.Text(rest))
	p.markComparison(&m)
	if len(p.Updates) > 0 {
		var drawing page.Page
		p.draw(&drawing)
		m.Block(drawing.String())
		p.markAlternatives(&m)
		p.markDuration(&m)
		for i, each := range p.Updates {
			each.mark(&m, i+1)
		}
	}
	markList(&m, "Not part of this plan", p.Missing)
	markList(&m, "Notices", p.Notices)
	_, err := m.WriteTo(w)
	return err
}

func (p Plan) markComparison(m *gfm.Document) {
	title, changes := p.compared()
	if title == "" {
		return
	}
	m.Paragraph(gfm.Text(title))
	for _, each := range changes {
		m.Line("- " + gfm.Text(each))
	}
	if len(changes) > 0 {
		m.Line("")
	}
}

func (p Plan) markAlternatives(m *gfm.Document) {
	if len(p.Alternatives) == 0 {
		return
	}
	m.Line("## Alternatives\n")
	m.Row("Path", "Updates", "Open risks", "Through")
	m.Row("---", "---", "---", "---")
	m.Row("this plan", strconv.Itoa(len(p.Updates)), strconv.Itoa(p.openRisks()), gfm.Text(through(p.versions())))
	for _, each := range p.Alternatives {
		m.Row(gfm.Text(each.Name), strconv.Itoa(each.Updates), strconv.Itoa(each.OpenRisks), gfm.Text(through(each.Versions)))
	}
	m.Line("")
	for _, each := range p.Alternatives {
		if len(each.Risks) > 0 {
			m.Paragraph(gfm.Text(each.Name) + " has the open risks " + gfm.Codes(each.Risks, maxRisks) + ".")
		}
	}
}

func (p Plan) markDuration(m *gfm.Document) {
	m.Line("## Duration\n")
	m.Row("", "")
	m.Row("---", "---")
	m.Row("Control plane", gfm.Text(p.Duration.ControlPlane.String()))
	if len(p.Pools) > 0 {
		m.Row("All nodes", gfm.Text(p.Duration.Total.String()+", if every drain is quick"))
	}
	for _, pool := range p.Pools {
		m.Row("Pool", gfm.Text(pool.String()))
	}
	m.Line("")
	for _, basis := range p.Duration.Basis {
		m.Paragraph(gfm.Text(basis))
	}
	markList(m, "What prolongs the updates", p.Duration.ProlongedBy)
}

// mark writes one update with its risks and findings.
func (u Update) mark(m *gfm.Document, number int) {
	m.Line(fmt.Sprintf("## Update %d: %s to %s\n", number, gfm.Text(u.From), gfm.Text(u.To+u.provisional())))
	m.Row("", "")
	m.Row("---", "---")
	m.Row("Image", gfm.Code(u.Image))
	if u.URL != "" {
		m.Row("Errata", gfm.Code(u.URL))
	}
	m.Row("Channels", gfm.Codes(u.Channels, 20))
	if len(u.Unpause) > 0 {
		m.Row("Unpause", gfm.Codes(u.Unpause, 20)+" before this update")
	}
	m.Line("")
	for _, risk := range u.Risks {
		m.Line("### " + gfm.Text(risk.label()) + " " + gfm.Code(risk.Name) + "\n")
		for _, paragraph := range []string{gfm.Lines(risk.Message), gfm.Text(risk.explanation()), gfm.Code(risk.URL)} {
			if paragraph != "" {
				m.Paragraph(paragraph)
			}
		}
	}
	for _, f := range u.Findings {
		if f.Outcome != preflight.Pass && f.Outcome != preflight.Skipped {
			markFinding(m, f)
		}
	}
}

func markFinding(m *gfm.Document, f finding.Finding) {
	m.Line("### " + gfm.Code(f.Name) + " " + gfm.Text(page.Outcome(f)) + "\n")
	m.Prose("", f.Message)
	if f.Bypass != nil {
		return
	}
	m.Prose("**Fix:** ", f.Remediation)
	for _, action := range f.Actions {
		m.Command(action.Command)
	}
}

func markList(m *gfm.Document, title string, items []string) {
	if len(items) == 0 {
		return
	}
	m.Line("## " + title + "\n")
	for _, item := range items {
		m.Line("- " + gfm.Text(item))
	}
	m.Line("")
}
