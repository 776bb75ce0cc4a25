package command

// A wrong command line in our words: what is wrong, and how it is used.

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// checkArgs has every command say which word is missing or too many, instead of
// counting args.
func checkArgs(c *cobra.Command) {
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		var ours *usageError
		if err == nil || errors.As(err, &ours) {
			return err
		}
		words := wanted(cmd.Use)
		if len(args) < len(words) {
			return badUsage("%s is missing; it is used as: %s", words[len(args)], cmd.UseLine())
		}
		most := len(args) - 1
		for most > 0 && check(cmd, args[:most]) != nil {
			most--
		}
		return badUsage("%q is one word too many; it is used as: %s", args[most], cmd.UseLine())
	}
}

// wanted are the words of a use line that must be there.
func wanted(use string) []string {
	var out []string
	depth, value := 0, false // within brackets; of a flag
	for _, w := range strings.Fields(use)[1:] {
		switch {
		case w[0] == '-':
			value = w != "--"
		case depth == 0 && w[0] != '[' && !value:
			word, _, _ := strings.Cut(w, "[")
			out = append(out, word)
		default:
			value = false
		}
		depth += strings.Count(w, "[") - strings.Count(w, "]")
	}
	return out
}

// flagError puts pflag's complaints into our words.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		return badUsage("there is no flag --%s for %s", unknown.GetSpecifiedName(), cmd.CommandPath())
	case errors.As(err, &unknown):
		return badUsage("there is no flag -%s for %s", unknown.GetSpecifiedName(), cmd.CommandPath())
	case errors.As(err, &empty):
		name, _ := pflag.UnquoteUsage(empty.GetFlag())
		return badUsage("--%s needs a value: --%s %s", empty.GetFlag().Name, empty.GetFlag().Name, name)
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "bool":
		return badUsage("--%s takes no value", value.GetFlag().Name)
	case errors.As(err, &value):
		return badUsage("--%s takes a whole number, not %q", value.GetFlag().Name, value.GetValue())
	}
	return badUsage("%v", err)
}

var (
	exclusive = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)
	notThere  = regexp.MustCompile(`^unknown command "(.*?)" for`)
)

// inOurWords says what cobra found once the flags were read; those errors have no type.
func inOurWords(cmd *cobra.Command, err error) error {
	text := err.Error()
	if m := exclusive.FindStringSubmatch(text); m != nil {
		return badUsage("--%s exclude each other: give one of them", strings.Join(strings.Fields(m[1]), " and --"))
	}
	if m := notThere.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("unknown command %q", m[1])
		if like := cmd.Root().SuggestionsFor(m[1]); len(like) > 0 {
			text += "; did you mean " + strings.Join(like, " or ") + "?"
		}
		return badUsage("%s", text)
	}
	return err
}
