//! The commands that change something: the question, the change, and what came of it.

use crate::acts::{Plan, Report};
use crate::cli::Act;
use crate::output::{Output, Progress};
use crate::server::{print_note, Failure, Outcome};
use crate::text::{separated, visible, QueueName};
use dq_client::blocking::Client;
use serde_json::json;
use std::fs::File;
use std::io::{self, IsTerminal, Write};

pub fn act(client: &Client, mut act: Act, output: &Output) -> Result<Outcome, Failure> {
    act.read_input()?;
    act.check()?;
    let is_asked = !act.is_agreed() && io::stdin().is_terminal();
    let plan = act.plan(client, act.is_dry() || is_asked)?;
    if plan.queues.is_empty() && plan.refused.is_empty() && plan.missing.is_none() {
        print_note(act.none());
        return Ok(Outcome::Nothing);
    }
    if act.is_dry() {
        return count(plan, output);
    }
    let is_question = plan.is_of_several || act.is_of_many();
    // That there is no message, the command says itself.
    if is_asked && is_question && plan.number != Some(0) && !agrees(&act.question(&plan))? {
        return Ok(Outcome::Nothing);
    }
    carry_out(&act, client, plan, output)
}

/// Prints how many messages would be changed.
fn count(plan: Plan, output: &Output) -> Result<Outcome, Failure> {
    for (queue, number) in &plan.queues {
        let output = if plan.is_of_several { &output.about(queue) } else { output };
        output.counted(*number, "selected", json!({ "selected": number }))?;
    }
    let is_done = plan.refused.is_empty() && plan.number.is_some_and(|number| number > 0);
    plan.refused.iter().for_each(print_note);
    plan.missing.map_or(Ok(Outcome::done_if(is_done)), Err)
}

/// Changes one queue after another. What one of them refuses is reported, and the others are changed nevertheless.
fn carry_out(act: &Act, client: &Client, plan: Plan, output: &Output) -> Result<Outcome, Failure> {
    let (mut queues, mut total, mut is_complete) = (0, 0, plan.refused.is_empty());
    plan.refused.iter().for_each(print_note);
    for (queue, most) in plan.queues {
        let progress = if act.is_of_many() { Progress::begin(act.task(), output) } else { Progress::none() };
        let result = act.run(client, &queue, most, &progress);
        drop(progress);
        let report = match result {
            Ok(report) => report,
            Err(failure) if !plan.is_of_several => return Err(failure),
            Err(failure) if failure.is_of_any_queue() => return Err(failure.in_context(&queue)),
            Err(failure) => {
                print_note(failure.about(Some(&queue.to_string())).after_write().in_context(&queue));
                is_complete = false;
                continue;
            }
        };
        let is_done = report.outcome == Outcome::Done;
        if is_done || !plan.is_of_several {
            total += report.number.unwrap_or(0);
            print(act, report, plan.is_of_several.then_some(&queue), output)?;
        }
        queues += u64::from(is_done);
    }
    if queues > 1 && total > 0 && !output.json {
        output.remark(&format!("{} {} in {queues} queues", separated(total), act.done()))?;
    }
    if plan.is_of_several && act.is_of_many() && is_complete && queues == 0 {
        print_note(act.none());
    }
    plan.missing.map_or(Ok(Outcome::done_if(is_complete && queues > 0)), Err)
}

fn print(act: &Act, report: Report, queue: Option<&QueueName>, output: &Output) -> Result<(), Failure> {
    let about = queue.map(|queue| output.about(queue));
    let output = about.as_ref().unwrap_or(output);
    if let Some(number) = report.number {
        output.counted(number, act.done(), json!({ act.done(): number }))?;
    }
    report.lines.into_iter().try_for_each(|(text, object)| output.result(&text, object))?;
    report.notes.into_iter().for_each(print_note);
    Ok(())
}

/// Asks on a terminal whether to go on. The question goes to standard error, so it is asked although the answer of the
/// command goes to a file; and to the terminal if errors go to a file too.
fn agrees(question: &str) -> Result<bool, Failure> {
    // In one piece, so that nothing else comes between.
    let question = visible(&format!("{question} [y/N] "));
    if io::stderr().is_terminal() {
        io::stderr().write_all(question.as_bytes())?;
    } else {
        File::options().write(true).open("/dev/tty")?.write_all(question.as_bytes())?;
    }
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let agrees = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !agrees {
        print_error!("dqctl: nothing was changed");
    }
    Ok(agrees)
}
