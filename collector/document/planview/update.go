package planview

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func section(update updateplan.Update, number int) document.Section {
	title := fmt.Sprintf("Update %d: %s to %s", number, update.From, update.To)
	if update.Provisional {
		title += " (provisional: as of the present cluster)"
	}
	table := document.Table{Title: fmt.Sprintf("Update %d", number)}
	table.Row("Image", update.Image)
	table.Row("Errata", update.URL)
	table.Row("Channels", words.List(update.Channels, mostNames))
	if len(update.Unpause) > 0 {
		table.Row("Unpause", words.List(update.Unpause, mostNames)+" before this update")
	}
	var items document.Items
	for _, risk := range update.Risks {
		items.Entries = append(items.Entries, riskItem(risk))
	}
	for _, f := range update.Findings {
		if f.Outcome != preflight.Pass && f.Outcome != preflight.Skipped {
			items.Entries = append(items.Entries, findingview.Item(f))
		}
	}
	return document.Section{Title: title, Blocks: []document.Block{table, items}}
}

func riskItem(risk updateplan.Risk) document.Item {
	item := document.Item{Mark: markOf(risk), Names: []string{risk.Name}, Counts: risk.Open, Message: risk.Message}
	if text := explanation(risk); text != "" {
		item.Message += "\n" + text
	}
	item.Fact("See:", risk.URL)
	return item
}

func markOf(risk updateplan.Risk) document.Mark {
	switch {
	case risk.Accepted != "":
		return document.Mark{Level: document.Neutral, Word: "accepted"}
	case risk.Applies == updateplan.False:
		return document.Mark{Level: document.Neutral, Word: "does not apply"}
	case risk.Applies == updateplan.True:
		return document.Mark{Level: document.Bad, Word: "OPEN, applies"}
	}
	return document.Mark{Level: document.Unclear, Word: "OPEN, unknown"}
}

func label(risk updateplan.Risk) string {
	word := markOf(risk).Word
	if strings.HasPrefix(word, "OPEN") {
		word += ":"
	}
	return word
}

// explanation is by what the risk was accepted or evaluated, or why it is unknown whether it applies.
func explanation(risk updateplan.Risk) string {
	switch {
	case risk.Accepted != "":
		return "Accepted: " + risk.Accepted
	case risk.Applies == updateplan.Unknown && risk.Detail != "":
		return fmt.Sprintf("Unknown (%s): %s", risk.Reason, risk.Detail)
	case risk.EvaluatedBy == updateplan.CVO:
		return "Evaluated by CVO (conditionalUpdates of ClusterVersion)."
	case risk.EvaluatedBy == updateplan.Preflight:
		return "Evaluated by this preflight."
	}
	return ""
}
