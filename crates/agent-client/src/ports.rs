//! Ports of a sandbox, through the agent in it.

use std::sync::Arc;

use async_trait::async_trait;
use atoll_agent_protocol::message::{Nothing, OfPort, request::Call, response::Answer};
use atoll_engine::{Error, ErrorKind, MAX_TUNNELS, Ports, Result, Tunnel};

use crate::{
    AgentSandbox, failure,
    line::{self, within},
    sandbox::ANSWER,
    tunnel::Duct,
};

#[async_trait]
impl Ports for AgentSandbox {
    async fn connect(&self, port: u16) -> Result<Tunnel> {
        if port == 0 {
            return Err(Error::invalid("a port is a number from 1 to 65535"));
        }
        let inner = Arc::clone(&self.inner);
        let place = Arc::clone(&inner.tunnel_places).try_acquire_owned().map_err(|_| {
            let message = format!("there are {MAX_TUNNELS} connections into the sandbox already");
            Error::new(ErrorKind::Exhausted, message).hint("close some of them")
        })?;
        let opened = within(ANSWER, async {
            let stream = inner.tunnels.begin(Call::Connect(OfPort { port: port.into() })).await?;
            match line::answer(&stream).await? {
                Answer::Done(_) => Ok(stream),
                _ => Err(failure::nonsense()),
            }
        });
        let stream = inner.living(opened).await?;
        Ok(Box::new(Duct::new(inner, stream, place)))
    }

    async fn listening(&self) -> Result<Vec<u16>> {
        let answer = self.inner.ask(Call::Listening(Nothing {}), ANSWER).await?;
        let Answer::Ports(told) = answer else { return Err(failure::nonsense()) };
        let ports: Option<Vec<u16>> =
            told.ports.iter().map(|port| u16::try_from(*port).ok()).collect();
        ports.filter(|ports| ports.is_sorted_by(|a, b| a < b)).ok_or_else(failure::nonsense)
    }
}
