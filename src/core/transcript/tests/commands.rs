//! Commands that no result of a call reports: those that the user has typed, and those in the background.

use super::scan;

#[test]
fn what_a_command_of_the_user_wrote_to_stderr_counts() {
    let typed = |stderr: &str| {
        let content = format!("<bash-stdout>x</bash-stdout><bash-stderr>{stderr}</bash-stderr>");
        serde_json::json!({"type": "user", "sessionId": "s", "message": {"role": "user", "content": content}}).to_string()
    };
    assert_eq!(scan(&typed("bash: nosuch: command not found")).len(), 1);
    assert_eq!(scan(&typed("")).len(), 0);
    assert_eq!(scan(&typed("Error: Compaction canceled.").replace("bash-std", "local-command-std")).len(), 1);
}

#[test]
fn a_command_of_the_user_has_its_exit_code_in_codex() {
    let in_codex = |code: u8| {
        let text = format!(
            "<user_shell_command>\n<command>\nmake\n</command>\n<result>\nExit code: {code}\nDuration: 0.1 seconds\nOutput:\nno rule for all\n</result>\n</user_shell_command>"
        );
        let message = serde_json::json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
        scan(&format!("{}\n", serde_json::json!({"type": "response_item", "payload": message})))
    };
    assert_eq!(in_codex(2).iter().map(|event| event.call.as_ref().and_then(|call| call.command.clone())).collect::<Vec<_>>(), [Some("make".into())]);
    assert_eq!(in_codex(0).len(), 0);
}

#[test]
fn a_background_command_that_failed_is_told_once() {
    let notice = |status: &str| {
        let summary = format!("Background command \"make\" {status} with exit code 2");
        serde_json::json!({"type": "system", "subtype": "task_notification", "session_id": "s", "task_id": "b1", "status": status, "summary": summary})
    };
    let failed = notice("failed");
    assert_eq!(scan(&format!("{failed}\n{failed}\n{}\n", notice("completed"))).len(), 1);
}
